package runtime

import (
	"encoding/json"
	"testing"
)

func factsOf(t *testing.T, text string) facts {
	t.Helper()
	var f facts
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return f
}

func TestSmoke(t *testing.T) {
	r := newRuntime(t)
	exit, out := run(t, r, Spec{Args: []string{"/bin/helper", "facts"}})
	t.Logf("%+v\n%+v", exit, factsOf(t, out))
	exit, out = run(t, r, Spec{Args: sh("echo $$; echo /proc/[0-9]*; echo /*; echo /bin/*; echo /lib*/*")})
	t.Logf("%+v\n%s", exit, out)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	t.Logf("%+v", c.Exec(t.Context(), ExecSpec{Argv: []string{"/bin/helper", "facts"}}))
}
