// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "cmp"

// Key is the 128 bit hash that stands for an identity: of a resource, or of a series within its resource.
// Whoever makes it hashes typed values and ignores their order.
type Key struct{ Hi, Lo uint64 }

// Compare gives a total order, so that several resources can always be taken in the same sequence.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Hi, o.Hi), cmp.Compare(k.Lo, o.Lo))
}
