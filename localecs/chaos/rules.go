package chaos

import (
	"slices"
	"strings"
	"time"
)

// What is a kind of loss.
type What string

// The losses. A task is the one that the fault hits.
const (
	// RequestFails: a request under way in the window may fail.
	RequestFails What = "a request fails"
	// TaskEnds: the task stops unexpectedly.
	TaskEnds What = "the task ends"
	// OutOfTraffic: Consul sends no traffic to the task.
	OutOfTraffic What = "the task is out of traffic"
	// UpdatesLate: callers learn of what happens to the task after the window.
	UpdatesLate What = "updates about it are late"
	// Unreachable: the process that ends the task cannot reach the servers, or does not run:
	// logging out and leaving come after the window, or never.
	Unreachable What = "servers out of reach"
	// StartsLate: a task that starts in the window does so after it, or fails.
	StartsLate What = "tasks start late"
	// ServiceToken and ClientToken stay after the task's end, and so do Service
	// and Agent, which is failed.
	ServiceToken What = "its services' token stays"
	ClientToken  What = "its agent's token stays"
	Service      What = "its services stay"
	AgentFails   What = "its agent is failed"
	// LoginToken: the token of a login in the window stays, as its answer may not
	// arrive, and then no process knows the token.
	LoginToken What = "the token of a login stays"
	// LeaveLost: the servers may never learn that the agent of a task which ends in
	// the window has left, and consider it failed.
	LeaveLost What = "the message that its agent leaves is lost"
)

// Limits within which a delay is no violation.
const (
	// updateBound is how long callers may keep calling an instance that cannot
	// answer: the promise of examples/rolling-update about a killed Envoy.
	updateBound = time.Second
	// healthBound is how long an instance that ECS has as UNHEALTHY, or that is
	// stopping, may be passing: health-sync looks twice a second, and writes.
	healthBound = 3 * time.Second
	// serveBound is how long a task may take from its start into the traffic:
	// three times what it takes on an idle machine.
	serveBound = 45 * time.Second
	// TokenBound and ServiceBound are how long something may stay after the end of
	// its task. It takes tens of milliseconds, but services come back when their token
	// still works: the agent that leaves writes the listener's check once more, after
	// the server has forgotten its node. The server looks for such nodes every 60 s
	// (Consul's ReconcileInterval).
	TokenBound   = 15 * time.Second
	ServiceBound = 75 * time.Second
	// AgentBound is how long the server may take to know that an agent has left: where
	// others have left or died a moment before, the gossip about it may get lost, and the server
	// considers it failed until the next exchange of whole states by Consul's gossip, which
	// each agent begins every 30 s (serf: MergeRemoteState).
	AgentBound = 45 * time.Second
	// logOutBound is until when after TERM the servers must be back for a token to be
	// logged out: health-sync tries for 27 s, at least every 5 s.
	logOutBound = 22 * time.Second
)

// Bound returns how long a leftover may remain after the end of its task.
func Bound(what What) time.Duration {
	switch what {
	case Service:
		return ServiceBound
	case AgentFails:
		return AgentBound
	}
	return TokenBound
}

// Rule defines what a kind of fault may cost. Without a rule it may cost nothing.
type Rule struct {
	// Kind is that of events; On, if any, is what it hits: a role, a part of one,
	// what a task is partitioned from, an endpoint. At is Entry or Instance, or both.
	Kind, On, At string
	What         What
	// The window begins with the fault and ends Late after it; AtMost, if any, is
	// where it ends at the latest, from the fault's beginning. Only faults that last
	// for Longer have it. A request is in it that is under way at any time of it.
	Late, AtMost, Longer time.Duration
	// Below, if any, limits the rule to links of fewer kilobits a second.
	Below int
	// With, if any, is a role that dies, too: in the same task, at most checkTTL before
	// or after.
	With Role
	// Alone, of a server that starts again, wants an agent that does not answer it then,
	// and has the window begin with that.
	Alone bool
	// AllTasks: the loss may be any task's, not only the target's.
	AllTasks bool
	// UntilUpdated extends the window until callers can know, but not beyond a fault that ends,
	// and Late; Forever extends it without end.
	UntilUpdated, Forever bool
	// Reason is why, Source where that is documented.
	Reason, Source string
}

// connecting is how long after a fault requests may fail that did not meet it:
// Envoy gives a connection that was opened under it up five seconds later
// (connect_timeout), and with it fails every request that waits for that instance
// on the same thread; queued requests are sent in the first seconds after.
const connecting = 8 * time.Second

// narrow is a link, in kilobits a second, that the traffic of a run can fill: 20 requests and
// their answers take 100 to 300, gossip and updates less.
const narrow = 1000

// checkTTL is the TTL of health-sync's checks.
const checkTTL = 30 * time.Second

// The target of a rule: the task that the traffic enters, or one that it calls.
const (
	Entry    = "entry"
	Instance = "instance"
)

// Rules returns the product's rules.
func Rules() []Rule {
	return slices.Concat(agentRules(), deathRules("kill"), deathRules("oom"), pauseRules(), outageRules(),
		endpointRules(), lifeRules())
}

const (
	demo      = "examples/rolling-update"
	death     = "COMPATIBILITY.md, what the death of an agent means"
	ttl       = "HEALTH.md, a TTL of 30 s on each check"
	essence   = "essential in the task definition"
	noServer  = "the servers cannot be updated meanwhile"
	lostLeave = "its message may go to an agent that is cut off, and gossip sends it once"
)

// agentRules returns the rules about the agent's death below a client-entrypoint that lives.
func agentRules() []Rule {
	s, kind := time.Second, "kill"
	return []Rule{
		{Kind: kind, On: string(Agent), What: AgentFails, Forever: true,
			Reason: "it did not leave; the servers forget it after 15 minutes", Source: death},
		{Kind: kind, On: string(Agent), What: TaskEnds, AtMost: 13 * s,
			Reason: "in its first minute ECS does not start it again; before, its token is logged out, for 10 s " +
				"where no server answers", Source: death},
		{Kind: kind, On: string(Agent), What: OutOfTraffic, Late: 15 * s,
			Reason: "its node is taken out of the catalog, or it starts again", Source: death},
		{Kind: kind, On: string(Agent), At: Entry, What: UpdatesLate, Late: 15 * s,
			Reason: "its Envoy gets no updates until the agent has started again", Source: death},
	}
}

// deathRules returns the rules about the death of a container.
func deathRules(kind string) []Rule {
	s := time.Second
	rules := []Rule{
		{Kind: kind, On: agentContainer, What: AgentFails, Forever: true, Reason: "it did not leave", Source: death},
		{Kind: kind, On: agentContainer, What: TaskEnds, AtMost: 3 * s,
			Reason: "in its first minute ECS does not start it again", Source: death},
		{Kind: kind, On: agentContainer, What: OutOfTraffic, Late: 30 * s, Reason: "gossip finds the agent failed",
			Source: death},
		{Kind: kind, On: agentContainer, What: UpdatesLate, Late: 20 * s,
			Reason: "its node stays in the catalog; gossip finds the agent failed after some seconds", Source: death},
		{Kind: kind, On: agentContainer, What: Service, Forever: true,
			Reason: "the servers remove them after 15 minutes", Source: death},
		{Kind: kind, On: agentContainer, What: ClientToken, Forever: true,
			Reason: "the process that logs it out was killed", Source: death},
		{Kind: kind, On: string(HealthSync), What: ServiceToken, Forever: true,
			Reason: "the process that logs it out was killed; the ACL controller removes it", Source: demo},
		{Kind: kind, On: string(HealthSync), What: OutOfTraffic, Forever: true, Reason: "its checks are not refreshed",
			Source: ttl},
		{Kind: kind, On: string(HealthSync), What: UpdatesLate, Late: 31 * s,
			Reason: "its checks pass until their TTL runs out", Source: ttl},
		{Kind: kind, On: string(HealthSync), With: Agent, What: UpdatesLate, Late: 2*checkTTL + s,
			Reason: "the restarted agent restores the status of its checks, for another TTL",
			Source: ttl + "; Consul keeps the state of checks"},
	}
	for _, role := range []Role{Application, Proxy} {
		on := string(role)
		rules = append(rules,
			Rule{
				Kind: kind, On: on, At: Instance, What: RequestFails, Late: updateBound, UntilUpdated: true,
				Reason: "callers learn of it a moment later", Source: demo,
			},
			Rule{
				Kind: kind, On: on, What: TaskEnds, AtMost: 3 * s, Reason: "its container is essential",
				Source: essence,
			},
			Rule{Kind: kind, On: on, What: OutOfTraffic, Forever: true, Reason: "its task ends", Source: essence})
	}
	return rules
}

// pauseRules returns the rules about processes that do not run.
func pauseRules() []Rule {
	s := time.Second
	return []Rule{
		{Kind: "freeze", On: string(Application), At: Instance, What: RequestFails, Late: s, AtMost: 12 * s,
			Longer: 4 * s, UntilUpdated: true,
			Reason: "requests time out until its health check has failed and callers know",
			Source: "interval and timeout of its healthCheck"},
		{Kind: "freeze", On: string(Application), At: Entry, What: RequestFails, Late: s, Longer: 4 * s,
			Reason: "the traffic enters through this task", Source: "its only entry point"},
		{Kind: "freeze", On: string(Application), What: OutOfTraffic, Late: 15 * s, Longer: 2 * s,
			Reason: "its health check fails", Source: "timeout of its healthCheck"},
		{Kind: "freeze", On: string(Proxy), What: RequestFails, Late: connecting, Longer: 4 * s,
			Reason: "requests time out; the kernel still accepts connections, so no check sees it",
			Source: "checks of mesh-init are TCP"},
		{Kind: "freeze", On: string(Proxy), What: UpdatesLate, Late: 2 * s,
			Reason: "it does not read its agent's updates", Source: "xDS"},
		{Kind: "freeze", On: string(Agent), What: UpdatesLate, Late: 15 * s, Reason: noServer,
			Source: "registration goes to the agent"},
		{Kind: "freeze", On: string(Agent), What: OutOfTraffic, Late: 20 * s, Longer: 2 * s,
			Reason: "gossip finds the agent failed until it answers again", Source: "Consul's gossip"},
		{Kind: "freeze", On: string(HealthSync), What: UpdatesLate, Late: 3 * s,
			Reason: "it does not read task metadata meanwhile", Source: "health-sync"},
		{Kind: "freeze", On: string(Agent), What: Unreachable, Late: 15 * s, Reason: "it cannot leave meanwhile",
			Source: "registration goes to the agent"},
		{Kind: "freeze", On: string(HealthSync), What: Unreachable, Late: 3 * s, Reason: "it cannot log out meanwhile",
			Source: "health-sync"},
		{Kind: "slow", On: string(Agent), What: UpdatesLate, Late: 10 * s, Reason: "it runs five times slower",
			Source: "registration goes to the agent"},
		{Kind: "slow", On: string(HealthSync), What: UpdatesLate, Late: 3 * s, Reason: "it runs five times slower",
			Source: "health-sync"},
		{Kind: "slow", On: string(Proxy), What: UpdatesLate, Late: 3 * s, Reason: "it runs five times slower",
			Source: "xDS"},
	}
}

// outageRules returns the rules about the servers, the network and its links.
func outageRules() []Rule {
	s := time.Second
	const gossip = "COMPATIBILITY.md, gossip, which finds it failed after some seconds"
	return []Rule{
		{Kind: "server", What: UpdatesLate, Late: 15 * s, Reason: noServer,
			Source: "all updates go through the server"},
		{Kind: "server", What: Unreachable, Late: 3 * s, Reason: "logout is not possible",
			Source: "COMPATIBILITY.md, within the stop timeout"},
		{Kind: "partition", On: "server", What: Unreachable, Late: 3 * s, Reason: "logout is not possible",
			Source: "COMPATIBILITY.md, within the stop timeout"},
		{Kind: "partition", On: "all", What: Unreachable, Late: 3 * s, Reason: "logout is not possible",
			Source: "COMPATIBILITY.md, within the stop timeout"},
		{Kind: "link", Below: narrow, What: Unreachable, Late: 6 * s, Reason: "it waits behind requests",
			Source: "TCP"},
		{Kind: "endpoint", On: "metadata", What: Unreachable, Late: 4 * s,
			Reason: "a container that waits for others cannot see their end",
			Source: "COMPATIBILITY.md, after all other containers"},
		{Kind: "server", What: StartsLate, Late: 15 * s, Reason: "nothing can log in or register",
			Source: "COMPATIBILITY.md, retried for 3 minutes"},
		{Kind: "server", What: OutOfTraffic, Late: 30 * s,
			Reason: "a server that comes back knows agents when they have joined", Source: "Consul's gossip"},
		{Kind: "server", On: "down", Alone: true, What: RequestFails, Late: 15 * s,
			Reason: "it contacts the agents that it knew one after the other; if it becomes leader before, it " +
				"removes all from the catalog until they register again", Source: "Consul: reconcileReaped"},
		{Kind: "partition", On: "server", What: UpdatesLate, Late: 15 * s, Reason: noServer,
			Source: "all updates go through the server"},
		{Kind: "partition", On: "server", What: StartsLate, Late: 15 * s, Reason: "nothing can log in or register",
			Source: "COMPATIBILITY.md, retried for 3 minutes"},
		{Kind: "partition", On: "server", What: OutOfTraffic, Late: 30 * s, Reason: "gossip may find its agent failed",
			Source: "Consul's gossip"},
		{Kind: "partition", On: "all", At: Instance, What: RequestFails, Late: connecting, AtMost: 30 * s,
			UntilUpdated: true, Reason: "gossip finds its agent failed", Source: gossip},
		{Kind: "partition", On: "all", At: Entry, What: RequestFails, Late: connecting,
			Reason: "the traffic enters through this task", Source: "its only entry point"},
		{Kind: "partition", On: "all", What: UpdatesLate, Late: 15 * s, Reason: noServer,
			Source: "all updates go through the server"},
		{Kind: "partition", On: "all", What: OutOfTraffic, Late: 30 * s, Reason: "gossip finds its agent failed",
			Source: gossip},
		{Kind: "partition", On: "all", AllTasks: true, What: OutOfTraffic, Late: 15 * s, Longer: 4 * s,
			Reason: "an agent that was cut off has found the others failed, and reports it until they refute it",
			Source: "Consul's gossip"},
		{Kind: "partition", On: "server", AllTasks: true, What: LeaveLost, Late: 30 * s, Reason: lostLeave,
			Source: "Consul's gossip"},
		{Kind: "partition", On: "all", AllTasks: true, What: LeaveLost, Late: 30 * s, Reason: lostLeave,
			Source: "Consul's gossip"},
		{Kind: "partition", On: anotherTask, At: Entry, What: RequestFails, Late: connecting,
			Reason: "only these two tasks notice the partition", Source: "Consul asks agents by way of others"},
		{Kind: "link", Below: narrow, What: RequestFails, Late: connecting, Longer: 2 * s,
			Reason: "traffic exceeds its link's bandwidth", Source: "TCP"},
		{Kind: "link", Below: narrow, What: UpdatesLate, Late: 6 * s, Reason: "updates wait behind requests",
			Source: "TCP"},
		{Kind: "link", Below: narrow, What: OutOfTraffic, Late: 20 * s, Reason: "gossip waits behind requests",
			Source: "Consul's gossip"},
	}
}

// endpointRules returns the rules about logins and the endpoints of AWS.
func endpointRules() []Rule {
	s := time.Second
	const unanswered = "its answer does not come; the ACL controller removes the token"
	const logged = "COMPATIBILITY.md, a login whose answer never arrived"
	var rules []Rule
	for _, r := range []Rule{{Kind: "server"}, {Kind: "partition", On: "server"}, {Kind: "partition", On: "all"},
		{Kind: "endpoint", On: "sts"}, {Kind: "endpoint", On: "iam"}} {
		r.What, r.Late, r.Reason, r.Source = LoginToken, s, unanswered, logged
		rules = append(rules, r)
	}
	for _, name := range []string{"sts", "iam", "credentials"} {
		rules = append(rules, Rule{Kind: "endpoint", On: name, What: StartsLate, Late: 10 * s,
			Reason: "the login of a starting task needs it", Source: "COMPATIBILITY.md, Retries at start"})
	}
	return append(rules,
		Rule{
			Kind: "endpoint", On: "metadata", What: StartsLate, Late: 10 * s, Reason: "a starting task reads it",
			Source: `COMPATIBILITY.md, row "metadata is read once"`,
		},
		Rule{Kind: "endpoint", On: "metadata", What: UpdatesLate, Late: 4 * s, Reason: "an invalid answer is ignored",
			Source: "health-sync: an invalid answer changes nothing"})
}

// lifeRules returns the rules about what is no fault.
func lifeRules() []Rule {
	s := time.Second
	return []Rule{
		{Kind: "stop", What: TaskEnds, AtMost: 3 * s, Reason: "it was asked to", Source: "ECS"},
		{Kind: "stop", What: OutOfTraffic, Forever: true, Reason: "its task ends", Source: "ECS"},
		{Kind: "spot", What: TaskEnds, AtMost: 3 * s, Reason: "it was asked to", Source: "ECS"},
		{Kind: "spot", What: OutOfTraffic, Forever: true, Reason: "its task ends", Source: "ECS"},
		{Kind: "unhealthy", What: OutOfTraffic, Late: 15 * s, Reason: "its health check fails",
			Source: "interval and retries of its healthCheck"},
	}
}

// name describes the rule in a line, with its source.
func (r Rule) name() string {
	return strings.Join(strings.Fields(r.Kind+" "+r.On+" "+string(r.With)+" "+r.At), " ") + ": " + r.Reason + " (" +
		r.Source + ")"
}
