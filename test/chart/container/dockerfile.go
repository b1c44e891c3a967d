// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// instruction is one line of a Dockerfile, continuation lines joined.
type instruction struct {
	word, rest string
}

// stage is a FROM instruction and what follows it.
type stage struct {
	from         string
	instructions []instruction
}

// stages reads a Dockerfile without its comments and blank lines. ARG before the
// first FROM is not known here.
func stages(text string) ([]stage, error) {
	var found []stage
	var joined []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			joined = append(joined, line)
		}
	}
	text = strings.ReplaceAll(strings.Join(joined, "\n"), "\\\n", " ")
	for _, line := range strings.Split(text, "\n") {
		word, rest, ok := strings.Cut(line, " ")
		if !ok {
			return nil, fmt.Errorf("%q is no instruction with an argument", line)
		}
		word, rest = strings.ToUpper(word), strings.TrimSpace(rest)
		switch {
		case word == "FROM":
			found = append(found, stage{from: rest})
		case len(found) == 0:
			return nil, fmt.Errorf("%q stands before any FROM", line)
		default:
			last := &found[len(found)-1]
			last.instructions = append(last.instructions, instruction{word, rest})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("there is no FROM")
	}
	return found, nil
}

// copied is what a COPY instruction copies. Stage is empty for the build
// context.
type copied struct {
	stage, owner, source, target string
}

func parseCopy(rest string) (copied, error) {
	var c copied
	words := strings.Fields(rest)
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		name, value, _ := strings.Cut(words[0], "=")
		switch name {
		case "--from":
			c.stage = value
		case "--chown":
			c.owner = value
		default:
			return c, fmt.Errorf("COPY %s: flag %s is not known here", rest, name)
		}
		words = words[1:]
	}
	if len(words) != 2 {
		return c, fmt.Errorf("COPY %s: want one source and one target", rest)
	}
	c.source, c.target = words[0], words[1]
	return c, nil
}

// execForm reads ENTRYPOINT and CMD, which must be JSON arrays: a scratch image
// has no shell.
func execForm(rest string) ([]string, error) {
	var words []string
	if err := json.Unmarshal([]byte(rest), &words); err != nil {
		return nil, fmt.Errorf("%s is not in exec form: %w", rest, err)
	}
	return words, nil
}
