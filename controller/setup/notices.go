package setup

import "github.com/meshtask/consul-ecs/internal/logkey"

// notice is information for an operator that is no error.
type notice struct {
	// Text is one of the notice constants.
	Text string
	// Method and ARN are what it is about, Other the controller or rule that
	// is the reason; each may be empty.
	Method, ARN, Other string
}

// Texts of notices, for the log.
const (
	noticeWhole = "auth method trusts every role of the account and no controller recorded it: remove it from " +
		"BoundIAMPrincipalARNs unless it is intended"
	noticeShared = "former role path stays trusted: another controller claims it; if that controller no longer " +
		"exists, delete the binding rule that is its record and the entry of BoundIAMPrincipalARNs"
	noticeFound = "former role path stays trusted: it was there before this controller; remove it from " +
		"BoundIAMPrincipalARNs unless it is intended"
	noticeUnreadable = "binding rule that is a record of trust cannot be read: no trust is removed until it is " +
		"corrected or deleted"
	noticeHiddenNode = "token cannot read the cluster's node, so that services of dead tasks stay: add the rule to " +
		"its policy"
	noticeNoACLs = "ACLs are disabled in Consul: no auth method is created, and only services of dead tasks are " +
		"removed"
	noticeAnonymous = "requests without a token may read services and nodes, which no option asks for: give " +
		"-anonymous-read if clients need it, else remove it with: consul acl policy delete -name " + anonymousPolicy
	noticeTheirMethod = "auth method was not made by a controller: its MaxTokenTTL is left unchanged"
	noticeTheirTTL    = "MaxTokenTTL of the auth method was set by another client and is left unchanged: set it to 0 " +
		"for that of -token-ttl"
	noticeUnrenewed = "-token-ttl is not set yet: these do not replace their tokens and would leave the mesh when " +
		"they expire; deploy them with this version, and proxy.mode direct, or give -token-ttl-force"
	noticeForeign = "shared policy has different rules and is left unchanged"
)

// logNotices logs the notices that are new.
func (s *Setup) logNotices(notices []notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logged == nil {
		s.logged = map[notice]struct{}{}
	}
	for _, n := range notices {
		if _, known := s.logged[n]; known {
			continue
		}
		s.logged[n] = struct{}{}
		var args []any
		for _, a := range []struct{ key, value string }{{logkey.AuthMethod, n.Method}, {logkey.Principal, n.ARN},
			{logkey.Reason, n.Other}} {
			if a.value != "" {
				args = append(args, a.key, a.value)
			}
		}
		s.Log.Warn(n.Text, args...)
	}
}
