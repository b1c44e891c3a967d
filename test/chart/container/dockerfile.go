// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"fmt"
	"strings"
)

// instruction is one line of a Dockerfile, continuation lines joined.
type instruction struct {
	word, rest string
}

// finalStage reads the instructions that make the image: those after the last
// FROM. Comments, blank lines and the stages before are left out.
func finalStage(text string) (from string, stage []instruction, err error) {
	joined := strings.ReplaceAll(text, "\\\n", " ")
	for _, line := range strings.Split(joined, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, ok := strings.Cut(line, " ")
		if !ok {
			return "", nil, fmt.Errorf("%q is no instruction with an argument", line)
		}
		word, rest = strings.ToUpper(word), strings.TrimSpace(rest)
		if word == "FROM" {
			from, stage = rest, nil
			continue
		}
		stage = append(stage, instruction{word, rest})
	}
	return from, stage, nil
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
