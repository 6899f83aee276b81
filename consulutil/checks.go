package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"
)

// ReadChecks returns the node's checks of these IDs that the catalog has and the token
// may read. Namespace and partition are those of the options.
//
// Consul looks each ID up in an index, so the cost does not grow with the node, which
// may hold the services of thousands of tasks.
func ReadChecks(c *api.Client, node string, ids []string, options *api.QueryOptions) ([]*api.HealthCheck, error) {
	options = options.WithContext(context.WithValue(options.Context(), readKey{}, true))
	for len(ids) > 0 {
		var ops api.TxnOps
		for _, id := range ids {
			ops = append(ops, &api.TxnOp{Check: &api.CheckTxnOp{Verb: api.CheckGet, Check: api.HealthCheck{
				Node: node, CheckID: id, Namespace: options.Namespace, Partition: options.Partition}}})
		}
		done, answer, _, err := c.Txn().Txn(ops, options)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read checks of node %s: %w", node, txnRefused(err))
		case done:
			var found []*api.HealthCheck
			for _, r := range answer.Results {
				found = append(found, r.Check)
			}
			return found, nil
		}
		// A missing ID fails the whole transaction.
		present, err := withoutMissing(ids, answer.Errors)
		if err != nil {
			return nil, fmt.Errorf("read checks of node %s: %w", node, err)
		}
		ids = present
	}
	return nil, nil
}

// withoutMissing drops the IDs that do not exist according to the transaction.
func withoutMissing(ids []string, failed api.TxnErrors) ([]string, error) {
	missing := map[int]bool{}
	for _, f := range failed {
		if !strings.Contains(f.What, "doesn't exist") {
			return nil, txnError(failed)
		}
		missing[f.OpIndex] = true
	}
	var present []string
	for i, id := range ids {
		if !missing[i] {
			present = append(present, id)
		}
	}
	if len(present) == len(ids) {
		return nil, errors.New("the transaction failed without a cause")
	}
	return present, nil
}

// txnRefused gives the error of a transaction request its status, which the library
// drops.
func txnRefused(err error) error {
	reason, ok := strings.CutPrefix(err.Error(), "Failed request: ")
	switch {
	case !ok:
		return err
	case strings.Contains(reason, "ACL not found"), strings.Contains(reason, "Permission denied"):
		return api.StatusError{Code: http.StatusForbidden, Body: reason}
	default:
		return api.StatusError{Code: http.StatusInternalServerError, Body: reason}
	}
}
