package consulutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/hashicorp/consul/api"
)

var errNoLeader = errors.New("no cluster leader")

// leaderSize bounds the answer that names the leader.
const leaderSize = 256

// HasLeader returns an error when a server does not answer, is overloaded or has no leader, and
// when an agent has not joined a cluster that has one. A refusal is no error: it is no evidence
// about the leader. A server without one holds a login for up to 7 s (rpc_hold_timeout), and
// answers seconds after the election; it answers this request at once, without a token.
func HasLeader(ctx context.Context, c *api.Client) error {
	leader, err := c.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	_, unanswered := errors.AsType[*url.Error](err)
	switch {
	case err == nil && leader == "":
		err = errNoLeader
	case !unanswered && !busy(err):
		return nil
	}
	return fmt.Errorf("read the leader: %w", err)
}

// HasLeader asks the server with that gRPC address, by HTTP and no other, and returns an
// error when it has no leader, does not answer, or answers with a fault. A refusal is no
// error: it is no evidence about the leader. The order of the servers stays as it is.
func (s *Servers) HasLeader(ctx context.Context, grpcAddress string) error {
	server, err := netip.ParseAddrPort(grpcAddress)
	if err != nil {
		return fmt.Errorf("read the leader: %w", err)
	}
	status, err := s.askLeader(ctx, server.Addr())
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return nil
	}
	return err
}

// askLeader returns nil when a server names a leader, and the status of its answer; 0 without
// an answer.
func (s *Servers) askLeader(ctx context.Context, server netip.Addr) (status int, err error) {
	f, err := s.connect()
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/status/leader", nil)
	if err != nil {
		return 0, err
	}
	resp, _, err := f.send(r, server, []netip.Addr{server})
	if err != nil {
		return 0, fmt.Errorf("read the leader: %w", err)
	}
	defer resp.Body.Close()
	var leader string
	text, err := io.ReadAll(io.LimitReader(resp.Body, leaderSize)) // to its end: the connection is used again
	switch {
	case resp.StatusCode != http.StatusOK:
		err = errors.New("status " + resp.Status)
	case err == nil:
		err = json.Unmarshal(text, &leader)
	}
	if err == nil && leader == "" {
		err = errNoLeader
	}
	if err != nil {
		err = fmt.Errorf("read the leader of server %s: %w", server, err)
	}
	return resp.StatusCode, err
}
