// Package consul issues tokens of Consul in two ways: Login logs in for the task through
// a JWT auth method and needs no privilege in Consul; ACL creates tokens with a token
// that has acl:write.
//
// Flow: 1. Issue makes nothing in Consul and remembers the grant; 2. Redeem takes the
// grant and makes the token, so that one that no task fetches never exists; 3. Revoke
// and Lookup go by the accessor.
//
// Owns: the form of the JWT, what a token of a task looks like in Consul.
// Never does: keep a grant over a restart, which voids it; renew, since Consul cannot.
// Start reading at: ACL, then Login.
package consul
