// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// The plugin of TokenSpeed takes the configuration that its README shows, and what
// is shown of a key with a default is the default.
func TestPluginTakesItsConfiguration(t *testing.T) {
	const check = `
import json, sys
from tokenspeed_otelcol.config import defaults, validate
shown = json.load(sys.stdin)["otelcol"]
taken = validate(shown)
assert {**taken, "resource": {}} == defaults(), taken
assert taken["resource"] == shown["resource"]
`
	plugin := filepath.Join(root(t), "plugins", "tokenspeed")
	for _, block := range blocks(t, filepath.Join(plugin, "README.md"), "json") {
		command := exec.CommandContext(t.Context(), python.Path(t), "-c", check)
		command.Dir = filepath.Join(plugin, "src")
		command.Stdin = strings.NewReader(block)
		out, err := command.CombinedOutput()
		assert.NoError(t, err, "%s\n%s", out, block)
	}
}
