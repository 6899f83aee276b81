package consulutil

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestLifeOfATokenOfARealConsul(t *testing.T) {
	t.Parallel()
	c := client(t, secured.Require(t), secured.Token)
	for ttl, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Hour} {
		made, _, err := c.ACL().TokenCreate(&api.ACLToken{Description: fmt.Sprint(ttl), ExpirationTTL: ttl}, nil)
		if err != nil {
			t.Fatal(err)
		}
		token, err := ReadToken(t.Context(), c, made.SecretID)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, "accessor", token.Accessor, made.AccessorID)
		testkit.Equal(t, "does not expire", token.Expires.IsZero(), want == 0)
		if life := token.Expires.Sub(token.Created); want > 0 && life != want {
			t.Errorf("life %s, want %s", life, want)
		}
	}
}

// A server whose clock is not ours gives a token that was made two minutes ago.
func TestLifeOfATokenIsByOurClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			now := time.Now().Add(ahead)
			end := now.Add(3 * time.Minute)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			json.NewEncoder(w).Encode(
				api.ACLToken{AccessorID: "a", SecretID: "s", CreateTime: now.Add(-2 * time.Minute),
					ExpirationTime: &end})
		}))
		t.Cleanup(srv.Close)
		token, err := ReadToken(t.Context(), newClient(t, Options{Address: srv.URL}), "s")
		if err != nil {
			t.Fatal(err)
		}
		age, rest := time.Since(token.Created), time.Until(token.Expires)
		if (age-2*time.Minute).Abs() > time.Minute || (rest-3*time.Minute).Abs() > time.Minute {
			t.Errorf("clock %s ahead: the token is %s old and lives for %s, want 2m and 3m", ahead, age, rest)
		}
	}
}

// The answer of the login has the life, so that no read is needed.
func TestLoginGivesTheLifeOfItsToken(t *testing.T) {
	c := newCluster(t, secured.Require(t), "life")
	c.authMethod("consul-ecs")
	c.rule("service", "web", "")
	method, _, err := c.admin.ACL().AuthMethodRead(c.method, nil)
	c.must(err)
	method.MaxTokenTTL = 10 * time.Minute
	_, _, err = c.admin.ACL().AuthMethodUpdate(method, nil)
	c.must(err)
	token, err := Login(t.Context(), client(t, secured, ""), LoginParams{Method: c.method, Bearer: c.bearer})
	c.must(err)
	if life := token.Expires.Sub(token.Created); life != 10*time.Minute {
		t.Errorf("life %s, want 10m", life)
	}
}

func TestRenewAt(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	early, late := 100*time.Minute, time.Duration(0)
	for range 1000 {
		after := Token{Created: noon, Expires: noon.Add(100 * time.Minute)}.RenewAt().Sub(noon)
		early, late = min(early, after), max(late, after)
	}
	if early < 60*time.Minute || late > 70*time.Minute {
		t.Errorf("renewed after %s to %s, want from 60 to 70 min", early, late)
	}
	if spread := late - early; spread < 8*time.Minute {
		t.Errorf("renewals are spread over %s, want 8 min at least", spread)
	}
	if at := (Token{Created: noon}).RenewAt(); !at.IsZero() {
		t.Errorf("a token that does not expire is renewed at %s", at)
	}
	if at := (Token{Created: noon, Expires: noon.Add(-time.Hour)}).RenewAt(); at.After(noon.Add(time.Second)) {
		t.Errorf("a token that has expired is renewed at %s", at)
	}
}
