package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// nodePause is the time between two reads of AwaitNodeRemoved.
const nodePause = 200 * time.Millisecond

// ErrNodeChanged is returned for a node that is not what was read any more; read it
// again. Classify gives retry.NotYet for it.
var ErrNodeChanged = errors.New("the node has changed since it was read")

// DeregisterNode removes the node with that ID from the catalog, with all of its
// services and checks; another node that has its name by now stays. A catalog
// without the ID is a success. The secret's token needs node:write for the node.
//
// Consul looks the ID up in an index, so the cost does not grow with the catalog.
func DeregisterNode(ctx context.Context, c *api.Client, id, partition, secret string) error {
	options := (&api.QueryOptions{Token: secret, Partition: partition}).WithContext(ctx)
	found, meta, err := c.Catalog().NodeServiceList(id, options)
	switch {
	case err != nil:
		return fmt.Errorf("read node %s: %w", id, err)
	case found != nil && found.Node != nil && found.Node.ID == id:
		return RemoveNode(c, found.Node, options)
	case (found == nil || found.Node == nil) && meta.ResultsFilteredByACLs:
		return &retry.PermanentError{Err: fmt.Errorf(`read node %s: Consul hides it from the token; give the token a `+
			`policy with: node_prefix "" { policy = "write" }`, id)}
	}
	return nil
}

// AwaitNodeRemoved returns nil when the node with that ID has been removed from the
// catalog, which held it at the call. A node that is not there, or hidden from the
// token, at the call is an error: its removal cannot be observed.
//
// It polls: a blocking query does not return when its node is removed.
func AwaitNodeRemoved(ctx context.Context, c *api.Client, id, partition, secret string) error {
	options := (&api.QueryOptions{Token: secret, Partition: partition}).WithContext(ctx)
	for observed := false; ; observed = true {
		found, meta, err := c.Catalog().NodeServiceList(id, options)
		switch present := found != nil && found.Node != nil && found.Node.ID == id; {
		case err != nil:
			return fmt.Errorf("read node %s: %w", id, err)
		case !present && observed && !meta.ResultsFilteredByACLs:
			return nil
		case !present:
			return fmt.Errorf("read node %s: not in the catalog, or hidden from the token", id)
		}
		select {
		case <-time.After(nodePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RemoveNode removes a node that was read before from the catalog, with all of its
// services and checks, in one transaction. It removes nothing and returns
// ErrNodeChanged when the node, or one of the given checks of it, was changed or
// removed since. Services are no part of that condition: the transaction API has
// none for them, so a service that is registered in between is removed too.
func RemoveNode(c *api.Client, node *api.Node, options *api.QueryOptions, checks ...*api.HealthCheck) error {
	var ops api.TxnOps
	for _, check := range checks {
		ops = append(ops, &api.TxnOp{Check: &api.CheckTxnOp{Verb: api.CheckDeleteCAS, Check: api.HealthCheck{
			Node: node.Node, CheckID: check.CheckID, Partition: node.Partition, ModifyIndex: check.ModifyIndex}}})
	}
	ops = append(ops, &api.TxnOp{Node: &api.NodeTxnOp{Verb: api.NodeDeleteCAS, Node: api.Node{
		Node: node.Node, Partition: node.Partition, ModifyIndex: node.ModifyIndex}}})
	done, answer, _, err := c.Txn().Txn(ops, options)
	if done {
		return nil
	}
	if err == nil {
		err = txnError(answer.Errors)
	}
	return fmt.Errorf("deregister node %s: %w", node.Node, err)
}

// txnError returns the error of a transaction that was not applied, which Consul answers
// with status 409 for every cause.
func txnError(failed api.TxnErrors) error {
	var errs []error
	for _, f := range failed {
		switch {
		case strings.HasSuffix(f.What, "index is stale"):
			return ErrNodeChanged
		case strings.Contains(f.What, "Permission denied"):
			errs = append(errs, api.StatusError{Code: http.StatusForbidden, Body: f.What})
		default:
			errs = append(errs, errors.New(f.What))
		}
	}
	return errors.Join(errs...)
}
