// Package broker gives tokens to ECS tasks that have no credentials: a task asks, ECS
// vouches for it, and a single-use handle goes to the address that ECS names. The task
// redeems the handle over TLS; only then is the token made.
//
// Flow of a request: 1. Handler decodes it and limits its rate; 2. Rules.check compares
// what ECS says of the task, and labels of its revision say what token it gets; 3. the
// backend issues a grant; 4. delivery.run pushes the handle; 5. redeemer.redeem exchanges it;
// 6. ECS is asked again, and sweeper.sweep goes on asking while the token lives.
//
// Package backend makes the tokens, in Consul or Vault. Package receiver is the task's side,
// and has the protocol of both: the broker imports it for the bodies and the sealing.
//
// Owns: the states of a request (state.go, pure), the audit log, and one record per task of
// the tokens that were issued (record.go), which has hashes and no secrets. A broker that
// begins to lead loads the records (store.go); it changes a copy of one and saves that if no
// other broker has, under the leader's lock.
// Never does: keep a secret, or trust what a caller says about itself.
// Start reading at: state.next, then leadership.submit; for records Record, then Store.
package broker
