package scheduler

import "time"

// Event is something that happened to the task: one of PullDone, PullFailed,
// Started, StartFailed, Exited, ProbeDone, StopRequested and Tick. Events that
// come too late (a pull that ends after the task stopped) change nothing. A
// zero At means now.
type Event interface{ event() }

// PullDone reports that a container's image is there.
type PullDone struct{ Container string }

// PullFailed reports that a container's image is not available. Nothing starts and
// the task stops. Reason gets the prefix "CannotPullContainerError: " unless it
// has it.
type PullFailed struct{ Container, Reason string }

// Started reports that a container's process runs since At.
type Started struct {
	Container string
	At        time.Time
}

// StartFailed reports that a container's process could not be started. Reason
// gets the prefix "CannotStartContainerError: " unless it has it.
type StartFailed struct{ Container, Reason string }

// Exited reports that a container's process ended at At. Code is the exit status,
// 128+n for death by signal n.
type Exited struct {
	Container string
	Code      int
	// OOM reports that the kernel killed it for its memory limit.
	OOM bool
	At  time.Time
}

// ProbeDone answers a Probe action: the probe ran from StartedAt to At. Every
// Probe is answered once, also when the container exits meanwhile.
type ProbeDone struct {
	Container string
	StartedAt time.Time
	Code      int
	Output    string
	// TimedOut reports that the probe was killed at its timeout. Code and Output
	// are then set by the scheduler.
	TimedOut bool
	At       time.Time
}

// StopRequested asks to stop the whole task. The first request decides code and
// reason: Code is one of the Stop constants, empty means StopUserInitiated;
// Reason is shown verbatim. With StopTaskFailedToStart it also reports what went
// wrong before any container could start, such as a secret that cannot be read
// ("ResourceInitializationError: ...").
type StopRequested struct {
	Code, Reason string
	// Kill ends the task as the death of its machine does: no container gets its
	// stop signal; each is killed at once, or as soon as it has started.
	Kill bool
	// Prompt stops a task at once whose agent polls, see Options.GatePeriod.
	Prompt bool
}

// Tick reports that time has passed. The first Tick begins the task; later ones
// are due at Next. A Tick that is early or not needed changes nothing.
type Tick struct{}

func (PullDone) event()      {}
func (PullFailed) event()    {}
func (Started) event()       {}
func (StartFailed) event()   {}
func (Exited) event()        {}
func (ProbeDone) event()     {}
func (StopRequested) event() {}
func (Tick) event()          {}

// Action is something the caller must do: one of Pull, Start, Signal, Kill,
// Probe and TaskStopped. Actions of one Apply may be carried out in parallel;
// the list order is that of the task definition.
type Action interface{ action() }

// Pull asks for a container's image. Answer: PullDone or PullFailed.
type Pull struct{ Container, Image string }

// Start asks to start a container's process. Answer: Started or StartFailed,
// then Exited when it ends.
type Start struct{ Container string }

// Signal asks to send the image's stop signal, else TERM, to the container's
// first process. Answer: none but the Exited that it may cause.
type Signal struct{ Container string }

// Kill asks to kill the container. Answer: Exited.
type Kill struct{ Container string }

// Probe asks to run the container's health check command inside it and to kill
// the probe's own process at Timeout. Answer: ProbeDone.
type Probe struct {
	Container string
	Timeout   time.Duration
}

// TaskStopped is the last action: every container is STOPPED and whatever the
// task holds can be released.
type TaskStopped struct{}

func (Pull) action()        {}
func (Start) action()       {}
func (Signal) action()      {}
func (Kill) action()        {}
func (Probe) action()       {}
func (TaskStopped) action() {}
