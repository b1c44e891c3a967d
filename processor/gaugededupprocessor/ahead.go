// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// atOnce is how many points are looked at ahead: enough for memory to be always busy, and few enough for all that was
// read to be in the nearest cache yet when they are judged.
const atOnce = 64

// ahead is what is known of the next points of a gauge before they are judged.
//
// With many series memory takes longer to tell the state of one than all else that is done with its point. Asked for
// together, the states come together.
type ahead struct {
	keys       [atOnce]observation.Key
	superseded [atOnce]bool
}

// look looks at up to atOnce points, and returns how many. A superseded point has no key, unless it is NoRecordedValue.
func (a *ahead) look(b *batch, at place, points pmetric.NumberDataPointSlice, from int) int {
	n := min(atOnce, points.Len()-from)
	for i := range n {
		dp := points.At(from + i)
		a.superseded[i] = b.p.cfg.Resolution > 0 && b.slots.superseded()
		if !a.superseded[i] || dp.Flags().NoRecordedValue() {
			a.keys[i] = seriesKey(at.key, dp.Attributes())
		}
	}
	if n > 1 {
		at.owner.State.gauges.Touch(a.keys[:n])
	}
	return n
}
