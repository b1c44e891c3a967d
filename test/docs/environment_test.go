// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reads finds what tests read from the environment, by literal or by a constant
// that is named beside its value.
var reads = regexp.MustCompile(`(?:Getenv\(|LookupEnv\(|environ(?:\.get\(|\[)|(?:Dir|Config|Env) += )"([A-Z][A-Z_]+)"`)

// test/README.md names every variable that a test reads.
func TestEveryVariableOfTestsIsNamed(t *testing.T) {
	named := map[string]bool{}
	for _, match := range regexp.MustCompile("`([A-Z][A-Z_]+)`").FindAllStringSubmatch(read(t, filepath.Join(root(t), "test", "README.md")), -1) {
		named[match[1]] = true
	}
	list, err := exec.CommandContext(t.Context(), "git", "-C", root(t), "ls-files", "*_test.go", "test/**.go", "test/**.py", "plugins/tokenspeed/tests/*.py").Output()
	require.NoError(t, err)
	found := map[string]bool{}
	for name := range strings.FieldsSeq(string(list)) {
		for _, match := range reads.FindAllStringSubmatch(read(t, filepath.Join(root(t), name)), -1) {
			found[match[1]] = true
			assert.True(t, named[match[1]], "test/README.md does not name %s, which %s reads", match[1], name)
		}
	}
	for name := range named {
		assert.True(t, found[name], "no test reads %s", name)
	}
	assert.Greater(t, len(found), 8)
}
