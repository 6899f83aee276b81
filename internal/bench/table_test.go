package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func sampleRows() []row {
	return []row{
		{"mesh-init: own time", milliseconds, "97", "25", sample{12, 10, 14}, []reference{
			{"process start", sample{4}},
			{"the peer", sample{48, 24}},
		}},
		{"Consul requests", count, "", "3", sample{3, 3}, nil},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := writeTable(&b, sampleRows()); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "table.txt", b.Bytes())
}

func TestJSON(t *testing.T) {
	t.Parallel()
	data, err := json.MarshalIndent(sampleRows(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "table.json", append(data, '\n'))
}
