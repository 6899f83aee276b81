package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/answer"
	"github.com/meshtask/consul-ecs/aclrules/resolver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/consulutil/aclread"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// aclSubject are the flags that say whose rights are asked for, and of whom.
type aclSubject struct {
	tokenFile, accessor, from, defaultPolicy, datacenter string
	policyFiles, groups                                  words
	login                                                resolver.Login
	tags, claims                                         pairs
}

// words collects a repeated flag.
type words []string

func (w *words) String() string     { return strings.Join(*w, ",") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

// pairs collects a repeated flag of the form key=value.
type pairs map[string]string

func (p pairs) String() string { return "" }
func (p pairs) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return fmt.Errorf("want key=value, got %q", s)
	}
	p[key] = value
	return nil
}

func (s *aclSubject) declare(fs *flag.FlagSet) {
	s.tags, s.claims = pairs{}, pairs{}
	fs.StringVar(&s.tokenFile, "token-file", "", "")
	fs.StringVar(&s.accessor, "accessor", "", "")
	fs.Var(&s.policyFiles, "policy-file", "")
	fs.StringVar(&s.login.Method, "login", "", "")
	fs.StringVar(&s.login.Entity.Name, "entity-name", "", "")
	fs.StringVar(&s.login.Entity.ID, "entity-id", "", "")
	fs.StringVar(&s.login.Entity.Account, "account-id", "", "")
	fs.StringVar(&s.login.Entity.Path, "entity-path", "", "")
	fs.Var(s.tags, "entity-tag", "")
	fs.Var(s.claims, "claim", "")
	fs.Var(&s.groups, "group", "")
	fs.StringVar(&s.from, "from", "", "")
	fs.StringVar(&s.defaultPolicy, "default-policy", "", "")
	fs.StringVar(&s.datacenter, "datacenter", "", "")
}

// check refuses flags that contradict each other.
func (s *aclSubject) check() error {
	var errs []error
	if s.tokenFile != "" && s.accessor != "" {
		errs = append(errs, errors.New("-token-file and -accessor name two tokens: give one"))
	}
	if s.from != "" && s.tokenFile != "" {
		errs = append(errs, errors.New("-from has no secrets to find -token-file by: give -accessor"))
	}
	if s.from != "" && s.accessor == "" && s.login.Method == "" && len(s.policyFiles) == 0 {
		errs = append(errs, errors.New("-from needs a subject: -accessor, -login or -policy-file"))
	}
	if s.login.Method == "" && (len(s.tags)+len(s.claims)+len(s.groups) > 0 || s.login.Entity.Name+s.login.Entity.ID+s.login.Entity.Account+s.login.Entity.Path != "") {
		errs = append(errs, errors.New("-entity-..., -account-id, -claim and -group belong to -login METHOD"))
	}
	if _, ok := verdictOf(s.defaultPolicy); !ok {
		errs = append(errs, fmt.Errorf("-default-policy %q: want allow or deny", s.defaultPolicy))
	}
	if len(errs) > 0 {
		return &cli.UsageError{Err: errors.Join(errs...)}
	}
	return nil
}

// verdictOf reads a default policy; empty is Unknown.
func verdictOf(text string) (v aclrules.Verdict, ok bool) {
	for _, v := range []aclrules.Verdict{aclrules.Allowed, aclrules.Denied} {
		if text == v.String() {
			return v, true
		}
	}
	return aclrules.Unknown, text == ""
}

// offline tells whether no server is needed: the policies are given, and
// nothing else is asked for.
func (s *aclSubject) offline() bool {
	return s.from == "" && len(s.policyFiles) > 0 && s.tokenFile == "" && s.accessor == "" && s.login.Method == ""
}

// world is where the subject's parts are read.
type world struct {
	getters    resolver.Getters
	byDefault  aclrules.Verdict
	datacenter string
}

// report resolves the subject.
func (s *aclSubject) report(ctx context.Context) (*answer.Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	subject, err := s.subject(ctx)
	if err != nil {
		return nil, err
	}
	w, err := s.world(ctx)
	if err != nil {
		return nil, err
	}
	if given, _ := verdictOf(s.defaultPolicy); given != aclrules.Unknown {
		w.byDefault = given
	}
	found := resolver.New(w.getters, resolver.Options{Datacenter: w.datacenter, Now: time.Now()}).Resolve(ctx, subject)
	return answer.New(found, w.byDefault), nil
}

// subject reads what the flags name.
func (s *aclSubject) subject(ctx context.Context) (resolver.Subject, error) {
	subject := resolver.Subject{Token: s.accessor}
	for _, file := range s.policyFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			return subject, cli.Usagef("-policy-file: %w", err)
		}
		subject.Policies = append(subject.Policies, resolver.Policy{Name: file, Rules: string(text)})
	}
	if s.login.Method != "" {
		login := s.login
		login.Entity.Tags, login.Entity.Values = s.tags, s.claims
		login.Entity.Lists = map[string][]string{"groups": s.groups}
		subject.Login = &login
	}
	if s.tokenFile != "" {
		accessor, err := s.accessorOf(ctx)
		if err != nil {
			return subject, err
		}
		subject.Token = accessor
	}
	subject.Self = subject.Token == "" && subject.Login == nil && len(subject.Policies) == 0
	return subject, nil
}

// accessorOf finds the accessor of the token file's secret, in its own name.
func (s *aclSubject) accessorOf(ctx context.Context) (string, error) {
	client, err := consulutil.NewClient(consulutil.Options{TokenFile: s.tokenFile})
	if err != nil {
		return "", cli.Usagef("-token-file: %w", err)
	}
	token, err := aclread.New(client).Token(ctx, "")
	if errors.Is(err, resolver.ErrNotFound) {
		return "", &cli.Plain{Err: &cli.Refused{Err: fmt.Errorf("-token-file %s: the server knows no such token: it is wrong, or was deleted, or has expired", s.tokenFile)}}
	}
	if err != nil {
		return "", &cli.Plain{Err: fmt.Errorf("-token-file %s: %w", s.tokenFile, err)}
	}
	return token.Accessor, nil
}

// world is nothing, a file or a server.
func (s *aclSubject) world(ctx context.Context) (world, error) {
	switch {
	case s.offline():
		return world{byDefault: aclrules.Denied, datacenter: s.datacenter}, nil
	case s.from != "":
		return s.worldOfFile()
	}
	client, err := consulutil.NewClient(consulutil.Options{})
	if err != nil {
		return world{}, err
	}
	reader := aclread.New(client)
	w := world{getters: reader.Getters(), byDefault: reader.DefaultPolicy(ctx), datacenter: s.datacenter}
	if w.datacenter == "" {
		if w.datacenter, err = reader.Datacenter(ctx); err != nil {
			return w, &cli.Plain{Err: err}
		}
	}
	return w, nil
}

func (s *aclSubject) worldOfFile() (world, error) {
	export, err := readExport(s.from)
	if err != nil {
		return world{}, err
	}
	w := world{getters: export.Getters(), datacenter: export.Datacenter}
	w.byDefault, _ = verdictOf(export.DefaultPolicy)
	if s.datacenter != "" {
		w.datacenter = s.datacenter
	}
	return w, nil
}
