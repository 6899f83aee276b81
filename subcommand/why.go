package subcommand

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/reach"
)

const whyHelp = `
Says whether service A can call service B, and if not, why and what to do. It asks the
Consul servers and changes nothing. It follows a request: A and its proxy, its upstream
for B, the discovery chain (router, splitter, resolver, failover), B's healthy
instances, the ports, the intention that decides, and the certificates.

It prints the first broken link and its remedy; with -v, all links. A request by HTTP is
compared with routes and with intentions of layer 7: -method, -path and -header say
which. With a splitter, A can call B only if each of its splits with a weight is right.

What Consul does not know, it does not check: security groups, whether the application
listens, whether an Envoy is connected, escape hatches of proxies (envoy_..._json).

The Consul token needs node_prefix "" and service_prefix "" "read", as the tokens of
tasks have them; for a peer, peering = "read". With fewer rights, an answer is unknown
where it depends on what is hidden.

Exit codes: 0 A can call B; 1 wrong usage; 2 it cannot; 3 not known: the token may not
read it, or the servers do not answer.

Environment: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's,
  CONSUL_CACERT_PEM

Example:
  $ consul-ecs why web api
  web cannot call api
  broken   intention: no intention allows web to call api, and the default is deny
           fix: Allow it: consul intention create -allow -replace web api`

func whyCommand() cli.Command {
	var o whyOptions
	return cli.Command{
		Synopsis:      "Say whether one service can call another, and why not",
		Usage:         "why [flags] A B",
		Help:          whyHelp,
		Flags:         o.declare,
		FlagsAnywhere: true,
		Run:           untilSignal(o.run),
	}
}

type whyOptions struct {
	question      reach.Question
	path          string
	verbose, json bool
}

func (o *whyOptions) declare(fs *flag.FlagSet) {
	o.question.Request.Header = map[string][]string{}
	fs.StringVar(&o.question.Peer, "peer", "", "B is imported from the peer `NAME`")
	fs.StringVar(&o.question.Datacenter, "datacenter", "", "B is in the datacenter `NAME` (default the server's)")
	fs.StringVar(&o.question.SourcePeer, "source-peer", "",
		"A is in the cluster of the peer `NAME`: examine only B's side")
	fs.StringVar(&o.question.Request.Method, "method", http.MethodGet, "`method` of the HTTP request")
	fs.StringVar(&o.path, "path", "/", "`path` of the HTTP request, with or without a query")
	fs.Func("header", "header of the HTTP request, `NAME=VALUE`; may be repeated", func(s string) error {
		name, value, found := strings.Cut(s, "=")
		if !found || name == "" {
			return fmt.Errorf("want NAME=VALUE")
		}
		name = strings.ToLower(name)
		o.question.Request.Header[name] = append(o.question.Request.Header[name], value)
		return nil
	})
	fs.BoolVar(&o.verbose, "v", false, "print all links, not only what is wrong")
	fs.BoolVar(&o.json, "json", false, "print JSON, always with all links")
}

// check finds every mistake that can be found without a request.
func (o *whyOptions) check(inv *cli.Invocation) error {
	if len(inv.Args) != 2 {
		return exit.Usagef("want two services: the one that calls, and the one that is called")
	}
	for _, name := range inv.Args {
		if name == "" || name == "*" {
			return exit.Usagef("%q is not the name of a service", name)
		}
	}
	o.question.Source, o.question.Destination = inv.Args[0], inv.Args[1]
	u, err := url.ParseRequestURI(o.path)
	if err != nil || !strings.HasPrefix(o.path, "/") {
		return exit.Usagef("-path %q: want a path such as /orders?id=1", o.path)
	}
	o.question.Request.Path, o.question.Request.Query = u.Path, u.Query()
	o.question.Request.Method = strings.ToUpper(o.question.Request.Method)
	if o.question.Peer != "" && o.question.Datacenter+o.question.SourcePeer != "" {
		return exit.Usagef("-peer excludes -datacenter and -source-peer")
	}
	return nil
}

func (o *whyOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if err := o.check(inv); err != nil {
		return err
	}
	facts, err := consulutil.ReadReach(ctx, consulOptions(inv), o.question)
	if err != nil {
		return plain(err)
	}
	report := reach.Examine(o.question, facts)
	if o.json {
		err = writeIndented(inv.Stdout, report)
	} else {
		w := bufio.NewWriter(inv.Stdout)
		writeReach(w, report, o.verbose)
		err = w.Flush()
	}
	switch {
	case err != nil:
		return err
	case report.Result == reach.Broken:
		return &exit.CodeError{Code: exit.CodeRefused}
	case report.Result == reach.Unknown:
		return &exit.CodeError{Code: exit.CodeUnknown}
	}
	return nil
}

// writeReach writes the answer, its cause and the warnings; with all, every link.
func writeReach(w io.Writer, r reach.Report, all bool) {
	verb := map[reach.State]string{reach.OK: "can", reach.Broken: "cannot", reach.Unknown: "may or may not"}[r.Result]
	fmt.Fprintf(w, "%s %s call %s\n", r.Source, verb, r.Destination)
	for i, l := range r.Links {
		if !all && &r.Links[i] != r.Cause && l.State != reach.Warning {
			continue
		}
		fmt.Fprintf(w, "%-8s %s: %s\n", l.State, l.Name, l.Text)
		if l.Remedy != "" {
			fmt.Fprintf(w, "         fix: %s\n", l.Remedy)
		}
	}
}
