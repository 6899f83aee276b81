package entrypoint

import (
	"strings"
	"testing"
)

func TestWithoutHotRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"envoy -c b.json", "envoy --disable-hot-restart -c b.json"},
		{"/usr/local/bin/envoy", "/usr/local/bin/envoy --disable-hot-restart"},
		{"envoy -c b.json -- x", "envoy --disable-hot-restart -c b.json -- x"},
		{"/docker-entrypoint.sh envoy -c b.json", "/docker-entrypoint.sh envoy --disable-hot-restart -c b.json"},
		{"/docker-entrypoint.sh -c b.json", "/docker-entrypoint.sh --disable-hot-restart -c b.json"},
		{"/docker-entrypoint.sh -c b.json --base-id 2", "/docker-entrypoint.sh -c b.json --base-id 2"},
		{"/docker-entrypoint.sh", "/docker-entrypoint.sh"},
		{"envoy -c b.json --disable-hot-restart", "envoy -c b.json --disable-hot-restart"},
		{"envoy --base-id 3 -c b.json", "envoy --base-id 3 -c b.json"},
		{"envoy --base-id=3", "envoy --base-id=3"},
		{"envoy --use-dynamic-base-id --base-id-path /tmp/id", "envoy --use-dynamic-base-id --base-id-path /tmp/id"},
		{"envoy --restart-epoch 1", "envoy --restart-epoch 1"},
		{"envoy --socket-path @other", "envoy --socket-path @other"},
		{"consul-dataplane -config-file d.json", "consul-dataplane -config-file d.json"},
		{"/docker-entrypoint.sh sh -c envoy", "/docker-entrypoint.sh sh -c envoy"},
		{"sh -c envoy", "sh -c envoy"},
		{"/sbin/tini -- envoy -c b.json", "/sbin/tini -- envoy --disable-hot-restart -c b.json"},
		{"env A=1 /usr/local/bin/envoy", "env A=1 /usr/local/bin/envoy --disable-hot-restart"},
		{"su-exec envoy envoy -c b.json", "su-exec envoy envoy --disable-hot-restart -c b.json"},
		{"dumb-init envoy --base-id 3", "dumb-init envoy --base-id 3"},
		{"gosu envoy", "gosu envoy"},
		{"tini", "tini"},
		{"pilot-agent proxy envoy", "pilot-agent proxy envoy"},
		{"", ""},
	} {
		command := strings.Fields(c.command)
		if got := strings.Join(WithoutHotRestart(command), " "); got != c.want {
			t.Errorf("WithoutHotRestart(%q) = %q, want %q", c.command, got, c.want)
		}
		if strings.Join(command, " ") != c.command {
			t.Errorf("WithoutHotRestart changed its argument %q", c.command)
		}
	}
}
