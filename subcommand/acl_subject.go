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
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// aclSubject are the flags that say whose rights are asked for, and of whom.
type aclSubject struct {
	tokenFile, accessor, from, defaultPolicy, datacenter string
	policyFiles, groups                                  []string
	login                                                aclrules.Login
	tags, claims                                         map[string][]string
}

// addTo collects a repeated flag of the form key=value.
func addTo(pairs map[string][]string) func(string) error {
	return func(s string) error {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return fmt.Errorf("want key=value, got %q", s)
		}
		pairs[key] = append(pairs[key], value)
		return nil
	}
}

func (s *aclSubject) declare(fs *flag.FlagSet) {
	s.tags, s.claims = map[string][]string{}, map[string][]string{}
	fs.StringVar(&s.tokenFile, "token-file", "", "")
	fs.StringVar(&s.accessor, "accessor", "", "")
	fs.Func("policy-file", "", appendTo(&s.policyFiles))
	fs.StringVar(&s.login.Method, "login", "", "")
	fs.StringVar(&s.login.Entity.Name, "entity-name", "", "")
	fs.StringVar(&s.login.Entity.ID, "entity-id", "", "")
	fs.StringVar(&s.login.Entity.Account, "account-id", "", "")
	fs.StringVar(&s.login.Entity.Path, "entity-path", "", "")
	fs.Func("entity-tag", "", addTo(s.tags))
	fs.Func("claim", "", addTo(s.claims))
	fs.Func("group", "", appendTo(&s.groups))
	fs.StringVar(&s.from, "from", "", "")
	fs.StringVar(&s.defaultPolicy, "default-policy", "", "")
	fs.StringVar(&s.datacenter, "datacenter", "", "")
}

// accessorLength is that of every accessor, a UUID.
const accessorLength = 36

// check refuses flags that contradict each other.
func (s *aclSubject) check() error {
	errs := []error{
		usageErrorIf(s.tokenFile != "" && s.accessor != "", "-token-file and -accessor name two tokens: give one"),
		usageErrorIf(s.accessor != "" && len(s.accessor) != accessorLength,
			"-accessor %s: want all %d characters of the accessor, as consul acl token list shows it", s.accessor,
			accessorLength),
		usageErrorIf(s.from != "" && s.tokenFile != "", "-from has no secrets to find -token-file by: give -accessor"),
		usageErrorIf(s.from != "" && s.accessor == "" && s.login.Method == "" && len(s.policyFiles) == 0,
			"-from needs a subject: -accessor, -login or -policy-file"),
		usageErrorIf(s.login.Method == "" && s.describesLogin(),
			"-entity-..., -account-id, -claim and -group belong to -login METHOD"),
	}
	for tag, values := range s.tags {
		errs = append(errs, usageErrorIf(len(values) > 1, "-entity-tag %s: an entity has a tag once, got %q", tag,
			values))
	}
	_, ok := verdictOf(s.defaultPolicy)
	return errors.Join(append(errs, usageErrorIf(!ok, "-default-policy %q: want allow or deny", s.defaultPolicy))...)
}

// describesLogin reports whether a flag describes who logs in.
func (s *aclSubject) describesLogin() bool {
	e := s.login.Entity
	return len(s.tags)+len(s.claims)+len(s.groups) > 0 || e.Name+e.ID+e.Account+e.Path != ""
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

// offline reports whether no server is needed: the policies are given, and
// nothing else is asked for.
func (s *aclSubject) offline() bool {
	return s.from == "" && len(s.policyFiles) > 0 && s.tokenFile == "" && s.accessor == "" && s.login.Method == ""
}

// shown reports whether the subject is a token whose secret is at hand: only such
// a one can be shown to a server.
func (s *aclSubject) shown() bool {
	return s.from == "" && s.accessor == "" && s.login.Method == "" && len(s.policyFiles) == 0
}

// report resolves the subject.
func (s *aclSubject) report(ctx context.Context, inv *cli.Invocation) (*aclrules.Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	subject, err := s.subject()
	if err != nil {
		return nil, err
	}
	w, err := s.aclSource(ctx, inv)
	if err != nil {
		return nil, err
	}
	found := aclrules.Resolver{Objects: w.objects, Datacenter: w.datacenter, Now: time.Now()}.Resolve(ctx, subject)
	byDefault, _ := verdictOf(s.defaultPolicy)
	if byDefault == aclrules.Unknown {
		byDefault = w.defaultPolicy(ctx)
	}
	return aclrules.NewReport(found, byDefault), nil
}

// subject returns what the flags name.
func (s *aclSubject) subject() (aclrules.Subject, error) {
	subject := aclrules.Subject{Token: s.accessor, Self: s.tokenFile != "" || s.shown()}
	var errs []error
	for _, file := range s.policyFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("-policy-file: %w", err))
		} else if _, err = aclrules.Parse(string(text)); err != nil {
			errs = append(errs, fmt.Errorf("-policy-file %s: %w", file, err))
		}
		subject.Policies = append(subject.Policies, aclrules.Policy{Name: file, Rules: string(text)})
	}
	if err := errors.Join(errs...); err != nil {
		return subject, &exit.UsageError{Err: err}
	}
	if s.login.Method != "" {
		login := s.login
		login.Entity.Tags = map[string]string{}
		for tag, values := range s.tags {
			login.Entity.Tags[tag] = values[0]
		}
		login.Entity.Claims = s.claims
		if len(s.groups) > 0 {
			login.Entity.Claims["groups"] = s.groups
		}
		subject.Login = &login
	}
	return subject, nil
}

// aclSource is where the subject's parts are read. defaultPolicy is asked last: the
// answers to other questions may tell it.
type aclSource struct {
	objects       aclrules.Objects
	datacenter    string
	defaultPolicy func(context.Context) aclrules.Verdict
}

// aclSource returns the source of ACL objects: none, a file or a server.
func (s *aclSubject) aclSource(ctx context.Context, inv *cli.Invocation) (aclSource, error) {
	switch {
	case s.offline():
		return aclSource{datacenter: s.datacenter, defaultPolicy: always(aclrules.Denied)}, nil
	case s.from != "":
		return s.sourceOfFile()
	}
	reader, err := aclReader(inv, consulutil.Options{}, s.datacenter)
	if err != nil {
		return aclSource{}, err
	}
	w := aclSource{objects: reader, defaultPolicy: reader.DefaultPolicy}
	if s.tokenFile != "" {
		own, err := aclReader(inv, consulutil.Options{TokenFile: s.tokenFile}, s.datacenter)
		if err != nil {
			return aclSource{}, exit.Usagef("-token-file: %w", err)
		}
		w.objects = shownToken{reader, own}
	}
	if w.datacenter, err = reader.Datacenter(ctx); err != nil {
		return w, plain(err)
	}
	return w, nil
}

func always(v aclrules.Verdict) func(context.Context) aclrules.Verdict {
	return func(context.Context) aclrules.Verdict { return v }
}

// shownToken is a token that was shown by its secret: itself it sees what it
// links to, and the reader of all else may see more.
type shownToken struct {
	aclrules.Objects
	own *consulutil.ACLReader
}

// Token reads the own token.
func (s shownToken) Token(ctx context.Context, _ string) (aclrules.Token, error) {
	t, err := s.own.Token(ctx, "")
	if err != nil {
		return t, err
	}
	if full, err := s.Objects.Token(ctx, t.Accessor); err == nil {
		return full, nil
	}
	return t, nil
}

func (s *aclSubject) sourceOfFile() (aclSource, error) {
	export, err := readExport(s.from)
	if err != nil {
		return aclSource{}, err
	}
	v, _ := verdictOf(export.DefaultPolicy)
	w := aclSource{objects: export, datacenter: export.Datacenter, defaultPolicy: always(v)}
	if s.datacenter != "" {
		w.datacenter = s.datacenter
	}
	return w, nil
}

// aclReader returns a reader, unless the environment asks for what only Consul
// Enterprise has.
func aclReader(inv *cli.Invocation, o consulutil.Options, datacenter string) (*consulutil.ACLReader, error) {
	for _, name := range []string{"CONSUL_NAMESPACE", "CONSUL_PARTITION"} {
		if err := community(name, inv.Getenv(name)); err != nil {
			return nil, err
		}
	}
	reader, err := consulutil.OpenACLReader(o, datacenter)
	if err != nil { // of the configuration: nothing was asked yet
		return nil, &exit.UsageError{Err: err}
	}
	return reader, nil
}

// community refuses a namespace or partition that Consul's community edition
// does not have.
func community(what, value string) error {
	if value != "" && !aclrules.SameName(value, "default") {
		return exit.Usagef("%s %s: %w", what, value, aclrules.ErrEnterprise)
	}
	return nil
}
