package file

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// FileName is the scenario file of a scenario directory.
const FileName = "scenario.yaml"

// The orders in which ECS stops the containers of a task.
const (
	// StopReverse is dependsOn reversed: agent 1.26.0 and later, Fargate.
	StopReverse = "reverse"
	// StopAtOnce is that of older agents.
	StopAtOnce = "at-once"
)

// Scenario is a scenario file: what tasks need besides their definitions, the steps,
// and the checks at the end. Keys "of scenarios" are not for task definitions without one.
type Scenario struct {
	// Name is also the directory of its logs.
	Name    string `yaml:"name" of:"scenarios"`
	Account string `yaml:"account"`
	Region  string `yaml:"region"`
	Cluster string `yaml:"cluster"`
	// Subnet is the simulated VPC's, in CIDR form.
	Subnet string `yaml:"subnet"`
	// StopOrder is StopReverse, the default, or StopAtOnce.
	StopOrder string `yaml:"stopOrder"`
	// Images are the images of containers. "*" is every image that is not among them.
	Images map[string]*Image `yaml:"images"`
	// Roles are IAM roles by path and name, as in an ARN after "role/".
	Roles map[string]Role `yaml:"roles"`
	// Secrets are the local store behind "secrets" of task definitions, by valueFrom.
	Secrets map[string]Secret `yaml:"secrets"`
	// EnvironmentFiles are the files behind "environmentFiles" of task
	// definitions, by ARN.
	EnvironmentFiles map[string]string `yaml:"environmentFiles"`
	// TimeScale divides the seconds of task definitions; 0 means 1.
	TimeScale float64 `yaml:"timeScale"`
	// GatePeriod makes a container that waits for others start only at a
	// multiple of it. The default is 5s, as the ECS agent has it; 0s means at once.
	GatePeriod time.Duration `yaml:"gatePeriod"`
	// HealthyAfter is how long a task without a health check runs before its service counts it as healthy,
	// divided by TimeScale. The default is 40s, as on ECS; 0s means at once.
	HealthyAfter time.Duration `yaml:"healthyAfter"`
	// CloudMap has the DNS names behind the IDs of AWS Cloud Map, such as srv-abc: api.shop.local.
	CloudMap map[string]string `yaml:"cloudMap"`
	Consul   Consul            `yaml:"consul" of:"scenarios"`
	// Publish has ports of this machine that lead to tasks and services, as "8080:web:80".
	Publish []string `yaml:"publish"`
	// Outside has TCP addresses that tasks may reach outside of the run: "db:5432=127.0.0.1:5432".
	Outside []string `yaml:"outside"`
	// API is how the ECS API is that tasks call.
	API API `yaml:"api"`
	// Tasks are by the name that the steps use.
	Tasks map[string]Task `yaml:"tasks" of:"scenarios"`
	// Services are ECS services by their name. Their tasks are called <service>-1,
	// <service>-2 and so on, in the order of their start.
	Services map[string]Service `yaml:"services" of:"scenarios"`
	// ServiceConnect is the proxy of Service Connect, in the tasks of services that have
	// serviceConnect: true. All other containers of such a task depend on it.
	ServiceConnect *AddedContainer `yaml:"serviceConnect" of:"scenarios"`
	// GuardDuty is the agent of GuardDuty Runtime Monitoring, in every task.
	GuardDuty *AddedContainer `yaml:"guardDuty" of:"scenarios"`

	// Seed draws the requests to which a fault's share applies; the same seed draws
	// the same.
	Seed uint64 `yaml:"seed" of:"scenarios"`
	// Faults start at their times, counted from the first step.
	Faults []chaos.Fault `yaml:"faults" of:"scenarios"`
	Steps  []Step        `yaml:"steps" of:"scenarios"`
	Checks Checks        `yaml:"checks" of:"scenarios"`

	// Dir is the file's directory; relative paths start there.
	Dir string `yaml:"-"`
}

// Role is an IAM role with its tags.
type Role struct {
	Tags map[string]string `yaml:"tags"`
	// Actions are what the role may call: of the ECS API, such as ecs:List*, and
	// iam:GetRole of itself, without which Consul refuses its login. Absent means
	// iam:GetRole alone.
	Actions []string `yaml:"actions"`
}

// Consul is the Consul server of the scenario, outside of ECS: ACLs on,
// default deny.
type Consul struct {
	Image string `yaml:"image"`
	// Address is where the server listens. It follows from the subnet.
	Address string `yaml:"-"`
	// Datacenter is dc1 if it is empty.
	Datacenter string `yaml:"datacenter"`
	// CASecret is the secret that gets the CA certificate of a server with TLS: HTTPS
	// on port 8501, and gRPC on 8503 in place of 8502. Empty means without TLS.
	CASecret string `yaml:"caSecret"`
	// AuthMethods are aws-iam methods that ask the simulated STS and IAM.
	AuthMethods   []AuthMethod     `yaml:"authMethods"`
	Tokens        []Token          `yaml:"tokens"`
	ConfigEntries []map[string]any `yaml:"configEntries"`
	// Config is further configuration of the server, as its files have it. What the
	// scenario sets itself, such as ACLs and the gRPC port, stays as it is.
	Config map[string]any `yaml:"config"`
}

// AuthMethod is an aws-iam auth method with one binding rule: to a service
// identity, or to a role of the method's name.
type AuthMethod struct {
	Name            string   `yaml:"name"`
	BoundPrincipals []string `yaml:"boundPrincipals"`
	EntityTags      []string `yaml:"entityTags"`
	BindService     string   `yaml:"bindService"`
	// BindRules are the role's ACL rules, in place of BindService.
	BindRules string `yaml:"bindRules"`
	// MaxTokenTTL is after how long the method's tokens expire; never when it is absent. Consul
	// permits a minute to a day.
	MaxTokenTTL time.Duration `yaml:"maxTokenTTL"`
}

// Token is an ACL token that the scenario makes and puts into the secret
// store.
type Token struct {
	Secret string `yaml:"secret"`
	Rules  string `yaml:"rules"`
}

// Task is a task of the scenario: a definition's file alone, or a mapping.
type Task struct {
	// Definition is the task definition's file.
	Definition string `yaml:"definition"`
	// Service is the ECS service that the task belongs to: such a task may
	// protect itself from scale-in. Empty means a standalone task.
	Service string `yaml:"service,omitempty"`
	// Commands replace those of the definition, by container, as
	// containerOverrides of RunTask do.
	Commands map[string][]string `yaml:"commands,omitempty"`
	// Tags are those of RunTask.
	Tags map[string]string `yaml:"tags,omitempty"`
	// PropagateTags may be TASK_DEFINITION: its tags are the task's, too.
	PropagateTags string `yaml:"propagateTags,omitempty"`
}

// UnmarshalYAML takes the file's name, or the mapping.
func (t *Task) UnmarshalYAML(unmarshal func(any) error) error {
	var definition string
	if unmarshal(&definition) == nil {
		t.Definition = definition
		return nil
	}
	type mapping Task // without this method
	return unmarshal((*mapping)(t))
}

// Checks are judged after the last step.
type Checks struct {
	// FailedRequests is how many may fail of the phases without own limits,
	// MinRequests how many must be answered in all.
	FailedRequests int `yaml:"failedRequests"`
	MinRequests    int `yaml:"minRequests"`
	// NoTokensOf lists auth methods none of whose tokens may be left.
	NoTokensOf []string `yaml:"noTokensOf"`
	// NoServices lists services no instance of which may be left.
	NoServices []string `yaml:"noServices"`
	// AgentsLeft: the Consul agent of each stopped task has left gracefully, or as
	// its step declares.
	AgentsLeft bool `yaml:"agentsLeft"`
	// CleanExits: every container of a stopped task ended with 0, but for those
	// that a step or a fault has killed.
	CleanExits bool `yaml:"cleanExits"`
	// FaultsMayMiss: a fault may come too late for what it is about, such as a
	// container that has ended.
	FaultsMayMiss bool `yaml:"faultsMayMiss"`
}

// maxBytes is far more than a scenario has.
const maxBytes = 1 << 20

// Load reads the scenario at path, a file or a directory with FileName in it,
// and reports everything that is wrong with it at once.
func Load(path string) (*Scenario, error) { return load(path, (*Scenario).problems) }

// LoadSetting reads of the scenario at path only where tasks live: account,
// region, cluster, subnet, images, roles and secrets. It may be a scenario that
// runs, and needs nothing else of one. An empty path is Default.
func LoadSetting(path string) (*Scenario, error) {
	if path == "" {
		return Default(), nil
	}
	return load(path, (*Scenario).settingProblems)
}

func load(path string, problems func(*Scenario) []error) (*Scenario, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		directory := path
		path = filepath.Join(path, FileName)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no %s in %s", FileName, directory)
		}
	}
	data, err := cli.ReadFile(path, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	s, err := parse(data, problems)
	if err != nil {
		return nil, eachIn(path, err)
	}
	s.Dir = filepath.Dir(path)
	return s, nil
}

// eachIn names the file in every one of joined errors.
func eachIn(path string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("scenario %s: %w", path, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, fmt.Errorf("scenario %s: %w", path, e))
	}
	return errors.Join(errs...)
}

// Default returns the values of what a scenario leaves out.
func Default() *Scenario {
	return &Scenario{
		Account:   "123456789012",
		Region:    "us-east-1",
		Cluster:   "default",
		Subnet:    "10.42.0.0/24",
		StopOrder: StopReverse,
		// The ECS agent's, so that a gate costs here what it costs there.
		GatePeriod:   5 * time.Second,
		HealthyAfter: 40 * time.Second,
	}
}

// Reduce sets what only scenarios have to its default, and returns the keys of what was there.
func (s *Scenario) Reduce() (dropped []string) {
	without := Default()
	without.Consul.Address = s.Consul.Address // follows from the subnet
	value, other := reflect.ValueOf(s).Elem(), reflect.ValueOf(without).Elem()
	for f := range value.Type().Fields() {
		if f.Tag.Get("of") != "scenarios" {
			continue
		}
		is, none := value.FieldByIndex(f.Index), other.FieldByIndex(f.Index)
		if !reflect.DeepEqual(is.Interface(), none.Interface()) {
			dropped = append(dropped, f.Tag.Get("yaml"))
			is.Set(none)
		}
	}
	return dropped
}

// parse reads a document. Unknown keys are errors, with their place; problems
// are what is wrong with the values.
func parse(data []byte, problems func(*Scenario) []error) (*Scenario, error) {
	s := Default()
	if err := Unmarshal(data, s, foreign(data)); err != nil {
		return nil, err
	}
	if subnet, err := netip.ParsePrefix(s.Subnet); err == nil { // else a problem
		s.Consul.Address = shapes.ServiceAddress(subnet).String()
	}
	return s, errors.Join(problems(s)...)
}

// foreign recognises what is no scenario by a document's keys.
func foreign(data []byte) func(keys []string) string {
	return func(keys []string) string {
		switch {
		case !slices.Contains(keys, "containerDefinitions") && !slices.Contains(keys, "taskDefinition"):
			return ""
		case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
			return "this is a task definition, not a scenario: localecs run takes it as an argument, from a file, " +
				"not from a pipe"
		}
		return "this is a task definition, which ECS takes as JSON: `yq -o=json` converts it, and localecs run takes " +
			"that as it is"
	}
}

//go:embed schema.json
var document string

// JSON returns the schema, draft 2020-12.
func JSON() string { return document }
