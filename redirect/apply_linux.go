package redirect

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// tableName is our table in each family; no other program writes to it.
const tableName = "consul_ecs"

const (
	// answerLimit ends the wait for the kernel's answers. A kernel that refuses a whole
	// transaction gives one answer, where the library awaits one per command. A busy host
	// needs some time for each rule.
	answerLimit  = 5 * time.Second
	limitPerRule = 5 * time.Millisecond
	// buffer holds a transaction of thousands of rules, and the answers to it: both are
	// sent at once.
	buffer = 4 << 20
)

// Apply replaces the rules of the calling thread's network namespace by the tables, in
// one transaction: a failure changes nothing, and whatever an earlier run applied, the
// result is the same. The error is permanent and names what the container lacks.
func Apply(tables []Table) error {
	return replace("redirect traffic to the proxy", tables)
}

// Remove removes the rules, if there are any. The error is permanent, like that of Apply.
func Remove() error {
	return replace("stop redirecting traffic to the proxy", nil)
}

// suspended is the comment of the rules of Suspend.
const suspended = "suspended by mesh-init"

// Suspend ends the effect of the rules, if there are any, until Resume or Apply. A second
// run of mesh-init needs that to reach Consul: its connections would go to a proxy that may
// not run. A first run learns from it, before it registers anything, whether Apply has the
// right to change rules. The error is permanent, like that of Apply.
func Suspend() error {
	return update("stop redirecting traffic to the proxy", func(conn *nftables.Conn, hook *nftables.Chain) error {
		conn.InsertRule(&nftables.Rule{
			Table: hook.Table, Chain: hook, Exprs: expressions(Rule{}, false),
			UserData: userdata.AppendString(nil, userdata.TypeComment, suspended),
		})
		return nil
	})
}

// Resume ends Suspend.
func Resume() error {
	return update("redirect traffic to the proxy again", func(conn *nftables.Conn, hook *nftables.Chain) error {
		rules, err := conn.GetRules(hook.Table, hook)
		for _, rule := range rules {
			if comment, _ := userdata.GetString(rule.UserData, userdata.TypeComment); comment == suspended {
				err = errors.Join(err, conn.DelRule(rule))
			}
		}
		return err
	})
}

// update changes the hooks of our tables that redirect, in one transaction.
func update(what string, change func(*nftables.Conn, *nftables.Chain) error) error {
	conn, err := nftables.New()
	if err != nil {
		return refused(what, err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		return refused(what, err)
	}
	for _, c := range chains {
		if c.Table.Name == tableName && (c.Name == hookPrerouting || c.Name == hookOutput) {
			if err := change(conn, c); err != nil {
				return refused(what, err)
			}
		}
	}
	if err := conn.Flush(); err != nil {
		return refused(what, err)
	}
	return nil
}

// refused returns the kernel's refusal.
func refused(what string, err error) error {
	return &retry.PermanentError{Err: fmt.Errorf("%s: %w", what, explain(err))}
}

// HasIPv6 reports whether the network namespace has an address of IPv6 by which others
// reach it. Each has ::1, and an interface a link-local address.
func HasIPv6() (bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list the task's addresses: %w", err)
	}
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsGlobalUnicast() {
			return true, nil
		}
	}
	return false, nil
}

func replace(what string, tables []Table) error {
	limit := answerLimit
	for _, t := range tables {
		for _, c := range t.Chains {
			limit += time.Duration(len(c.Rules)) * limitPerRule
		}
	}
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(buffer), c.SetReadBuffer(buffer), c.SetReadDeadline(time.Now().Add(limit)))
	}))
	if err == nil {
		for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
			// Only a table that exists can be deleted.
			conn.DelTable(conn.AddTable(&nftables.Table{Name: tableName, Family: family}))
		}
		for _, t := range tables {
			addTable(conn, t)
		}
		err = conn.Flush()
	}
	if err != nil {
		return refused(what, err)
	}
	return nil
}

// explain returns what the container or the host lacks.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: transparentProxy needs the EC2 launch type, user 0 and "+
			"linuxParameters.capabilities.add NET_ADMIN in this container; on Fargate set "+
			"transparentProxy.enabled to false and use upstreams", syscall.EPERM)
	}
	// Of a refused transaction, the kernel's first answer has the cause.
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = errno
	}
	return fmt.Errorf("%w: transparentProxy needs a host whose kernel has nf_tables with NAT, "+
		"such as Amazon Linux 2023 or Bottlerocket", err)
}

// addTable queues the commands that make a table. Chains come before the rules that
// jump to them.
func addTable(conn *nftables.Conn, t Table) {
	family := nftables.TableFamilyIPv4
	if t.IPv6 {
		family = nftables.TableFamilyIPv6
	}
	table := conn.AddTable(&nftables.Table{Name: tableName, Family: family})
	chains := map[string]*nftables.Chain{}
	for _, c := range t.Chains {
		chains[c.Name] = conn.AddChain(newChain(table, c.Name))
	}
	for _, c := range t.Chains {
		for _, rule := range c.Rules {
			conn.AddRule(&nftables.Rule{Table: table, Chain: chains[c.Name], Exprs: expressions(rule, t.IPv6)})
		}
	}
}

// newChain gives the hooks the priorities that iptables has for its table nat.
func newChain(table *nftables.Table, name string) *nftables.Chain {
	chain := &nftables.Chain{Name: name, Table: table}
	switch name {
	case hookPrerouting:
		chain.Hooknum, chain.Priority = nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest
	case hookOutput:
		chain.Hooknum, chain.Priority = nftables.ChainHookOutput, nftables.ChainPriorityNATDest
	case hookPostrouting:
		chain.Hooknum, chain.Priority = nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource
	default:
		return chain
	}
	accept := nftables.ChainPolicyAccept
	chain.Type, chain.Policy = nftables.ChainTypeNAT, &accept
	return chain
}
