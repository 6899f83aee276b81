package controller

import (
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

// Leftovers identify what tasks of a generation may leave in Consul.
type Leftovers struct {
	// Methods are the auth methods whose tokens tasks get by login.
	Methods []string
	// ClusterNode means that the services of all tasks are on one node, registered
	// without agents, whose name is the cluster's ARN; else each task's are on the node
	// of the task's agent.
	ClusterNode bool
}

// Tenancy is where something is in Consul Enterprise; both are empty otherwise.
type Tenancy struct {
	Partition string `json:"partition,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Token is an ACL token of a task.
type Token struct {
	Accessor, Method, Task string
	// Created is by the clock of Consul's servers.
	Created time.Time
	// Sure is false when the login also matches another cluster of the same name.
	Sure    bool
	Tenancy Tenancy
}

// Service is an instance of a task's service or its proxy.
type Service struct {
	Node, ID, Task string
	// Sure is false when the task's ARN does not name the cluster.
	Sure    bool
	Tenancy Tenancy
}

// tokenEntry is the part of a token in the list that clean-up reads.
type tokenEntry struct {
	AccessorID, Description, AuthMethod string
	CreateTime                          time.Time
}

// token returns the task's token in an entry, and false unless it was made by one of
// our auth methods, by a login that named a task and our cluster: by its ARN, or
// by its name as logins of tasks on EC2 instances did before.
func (l Leftovers) token(e tokenEntry, cluster awsutil.Cluster) (Token, bool) {
	method := l.method(e.AuthMethod)
	task, name := e.login()
	sure := name == cluster.ARN
	if method == "" || !sure && name != cluster.Name || !awsutil.IsTaskID(task) {
		return Token{}, false
	}
	return Token{Accessor: e.AccessorID, Method: method, Task: task, Created: e.CreateTime, Sure: sure}, true
}

// login returns the task and the cluster that a login named; both are empty if the
// token names none.
func (e tokenEntry) login() (task, cluster string) {
	meta := consulutil.LoginMeta(e.Description)
	return meta[config.LoginMetaTaskID], meta[config.LoginMetaCluster]
}

// foreign reports whether a token that is not ours looks like one: made by one of our
// methods, and not for a task of another cluster.
func (l Leftovers) foreign(e tokenEntry, cluster awsutil.Cluster) bool {
	task, name := e.login()
	elsewhere := awsutil.IsTaskID(task) && name != "" && name != cluster.ARN && name != cluster.Name
	return l.method(e.AuthMethod) != "" && !elsewhere
}

// unclaimed reports whether a token of one of our methods, of another cluster's task, names none of
// the known clusters.
func (l Leftovers) unclaimed(e tokenEntry, known map[string]bool) bool {
	_, cluster := e.login()
	return l.method(e.AuthMethod) != "" && !known[cluster]
}

// method returns our copy of an auth method's name, empty if it is not ours: the entry's
// shares memory with the whole answer.
func (l Leftovers) method(name string) string {
	if i := slices.IndexFunc(l.Methods, func(m string) bool { return aclrules.SameName(m, name) }); i >= 0 {
		return l.Methods[i]
	}
	return ""
}

// serviceEntry is the part of a service instance that clean-up reads.
type serviceEntry struct {
	Node, ServiceID, ServiceKind string
	ServiceMeta                  map[string]string
}

// nodeService is the part of a service in a node's list that clean-up reads.
type nodeService struct {
	ID   string
	Meta map[string]string
}

// foreign reports whether a service that is not ours looks like one: its task is not
// another cluster's.
func (e serviceEntry) foreign(cluster awsutil.Cluster) bool {
	arn := e.ServiceMeta[config.MetaTaskARN]
	_, ours, _ := cluster.Belongs(arn)
	_, path, _ := strings.Cut(arn, ":task/")
	elsewhere := !ours && strings.Count(path, "/") <= 1 && awsutil.IsTaskID(path[strings.LastIndexByte(path, '/')+1:])
	return !elsewhere
}

// service returns the task's service in an entry: by its meta consul-ecs registered it
// for a task of our cluster, and its ID ends in the same task's ID, which meta cannot
// change.
func (l Leftovers) service(e serviceEntry, cluster awsutil.Cluster) (Service, bool) {
	task, ours, sure := cluster.Belongs(e.ServiceMeta[config.MetaTaskARN])
	id := workload.ServiceID("", task)
	if !ours || e.ServiceMeta[config.MetaSource] != config.SourceValue ||
		!strings.HasSuffix(e.ServiceID, id) && !strings.HasSuffix(e.ServiceID, workload.ProxyID(id)) {
		return Service{}, false
	}
	return Service{Node: e.Node, ID: e.ServiceID, Task: task, Sure: sure}, true
}
