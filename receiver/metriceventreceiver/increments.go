// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// increments are those of one counter added up: an int as long as all of them
// are, else a float. None of them is negative or not finite.
type increments struct {
	period
	ints   int64
	floats observation.Sum
	float  bool
}

// add is false, and changes nothing, when the total would leave its range. The
// first increment never does.
func (i *increments) add(value number) bool {
	if !i.float && !value.float {
		if value.int64() > math.MaxInt64-i.ints {
			return false
		}
		i.ints += value.int64()
		return true
	}
	total := i.floats
	if !i.float {
		total.Add(float64(i.ints))
	}
	total.Add(value.float64())
	if !finite(total.Value()) {
		return false
	}
	i.floats, i.float = total, true
	return true
}

func (i *increments) write(point pmetric.NumberDataPoint) {
	if i.float {
		point.SetDoubleValue(i.floats.Value())
	} else {
		point.SetIntValue(i.ints)
	}
}

// period is the time that added up events span.
type period struct{ oldest, newest int64 }

func (p *period) cover(timestamp int64) {
	if p.oldest == 0 || timestamp < p.oldest {
		p.oldest = timestamp
	}
	p.newest = max(p.newest, timestamp)
}
