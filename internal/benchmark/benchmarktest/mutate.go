// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

// Mutate edits the files of a run in ways that the bytes choose: each edit goes
// down from the top of a file and replaces, removes or repeats what it finds.
// The result is JSON, and may be anything else than an artifact.
func (r *Run) Mutate(choices []byte) {
	next := func(n int) int {
		if len(choices) == 0 || n == 0 {
			return 0
		}
		choice := int(choices[0]) % n
		choices = choices[1:]
		return choice
	}
	files := append([]*Object{r.Merged, r.Sidecar}, r.Ranks...)
	for len(choices) > 0 {
		file := files[next(len(files))]
		if file == nil {
			continue
		}
		mutate(file, next)
	}
}

func mutate(value any, next func(int) int) {
	// One in five steps ends the way down.
	switch value := value.(type) {
	case *Object:
		if len(value.keys) == 0 {
			return
		}
		key := value.keys[next(len(value.keys))]
		if below(value.values[key]) && next(5) > 0 {
			mutate(value.values[key], next)
			return
		}
		if next(6) == 0 {
			value.keys = remove(value.keys, key)
			delete(value.values, key)
			return
		}
		value.values[key] = replacement(value.values[key], next)
	case List:
		if len(value) == 0 {
			return
		}
		index := next(len(value))
		if below(value[index]) && next(5) > 0 {
			mutate(value[index], next)
			return
		}
		if next(3) == 0 {
			value[index] = value[next(len(value))]
			return
		}
		value[index] = replacement(value[index], next)
	}
}

func below(value any) bool {
	switch value.(type) {
	case *Object, List:
		return true
	default:
		return false
	}
}

func remove(keys []string, key string) []string {
	var left []string
	for _, other := range keys {
		if other != key {
			left = append(left, other)
		}
	}
	return left
}

func replacement(old any, next func(int) int) any {
	switch next(12) {
	case 0:
		return nil
	case 1:
		return -1
	case 2:
		return 1 << 62
	case 3:
		return 1e300
	case 4:
		return "text"
	case 5:
		return List{}
	case 6:
		return NewObject()
	case 7:
		return List{old, clone(old)}
	case 8:
		return true
	case 9:
		return Raw("18446744073709551616")
	case 10:
		return next(7)
	default:
		if number, ok := old.(int); ok {
			return number + next(5) - 2
		}
		return -0.5
	}
}
