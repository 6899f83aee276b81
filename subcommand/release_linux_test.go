package subcommand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const maps = `00400000-00ba4000 r-xp 00000000 00:19 104   /consul/consul-ecs
00ba4000-01364000 r--p 007a4000 00:19 104                       /consul/consul-ecs
01364000-013d6000 rw-p 00f64000 00:19 104                       /consul/consul-ecs
013d6000-0341b000 rw-p 00000000 00:00 0
7f0602dc8000-7f0602dc9000 r--p 00000000 00:19 105               /consul/consul-ecs.pem
7fff2edec000-7fff2ee0d000 rw-p 00000000 00:00 0                 [stack]
7fff2ef00000-7fff2ef02000 r-xp 00000000 00:00 0                 [vdso]
`

func TestProgramMappingsAreThoseOfItsCode(t *testing.T) {
	t.Parallel()
	want := []mapping{{0x400000, 0xba4000}}
	if d := cmp.Diff(want, programMappings(maps, "/consul/consul-ecs"), cmp.AllowUnexported(mapping{})); d != "" {
		t.Error(d)
	}
	if got := programMappings("00400000 r-xp 0 00:19 104 /p\nx-y r-xp 0 00:19 104 /p\n0-y r-xp 0 00:19 104 /p\n", "/p"); got != nil {
		t.Errorf("mappings %v of what is none", got)
	}
}

func TestProgramRunsOnAfterItsPagesAreReleased(t *testing.T) {
	t.Parallel()
	for range 3 {
		if n, err := releaseProgram(); err != nil || n == 0 {
			t.Errorf("released %d mappings, %v; want one and more", n, err)
		}
	}
}
