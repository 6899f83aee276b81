package admission

import (
	"fmt"
	"strings"
	"testing"
)

// The corpus, one definition a round: the target is 1,000 a second on one core.
func BenchmarkAdmit(b *testing.B) {
	type input struct {
		doc  []byte
		mesh *Mesh
	}
	var inputs []input
	for name, mesh := range corpus {
		inputs = append(inputs, input{readTestdata(b, "plain", name), meshFile(b, mesh)})
	}
	for i := 0; b.Loop(); i++ {
		in := inputs[i%len(inputs)]
		r, err := Admit(in.doc, Options{Mesh: in.mesh})
		if err != nil {
			b.Fatal(err)
		}
		r.After.Bytes()
	}
}

// The largest definition that ECS takes has 64 KiB: the target is 5 ms.
func BenchmarkAdmitLargest(b *testing.B) {
	var env []string
	for i := range 600 {
		env = append(env, fmt.Sprintf(`{"name": "VARIABLE_%d", "value": "%s"}`, i, strings.Repeat("x", 50)))
	}
	doc := definition("", plainApp+`, "environment": [`+strings.Join(env, ", ")+`]`)
	mesh := parseMesh(b, []byte(plainMesh))
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		r, err := Admit(doc, Options{Mesh: mesh})
		if err != nil {
			b.Fatal(err)
		}
		r.After.Bytes()
	}
}
