package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// ready prints a line, so that its start shows, and stays.
const ready = "echo ready; exec sleep 600"

// BenchmarkTenTasks starts ten tasks of five containers, every second one a chain of
// dependencies, until each program has printed a line. The same programs are started
// without a simulator for comparison: by fork and exec, and in bare namespaces.
func BenchmarkTenTasks(b *testing.B) {
	const tasks, containers = 10, 5
	b.Run("localecs", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w := newFixture(b, nil)
			b.StartTimer()
			for i := range tasks {
				start(b, w, i, fiveContainers(i%2 == 1)...)
			}
			for i := range tasks {
				for c := range containers {
					printed(b, w.LogFile(taskName(i), fmt.Sprint("c", c)))
				}
			}
			b.StopTimer()
			closeFixture(b, w)
			b.StartTimer()
		}
	})
	for name, flags := range map[string]uintptr{
		"programs alone":  0,
		"bare namespaces": unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				stop := startAlone(b, tasks*containers, flags, "/bin/sh", "-c", ready)
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		})
	}
}

// fiveContainers returns side by side, or a chain that begins with one that exits.
func fiveContainers(chain bool) []taskdef.Container {
	all := make([]taskdef.Container, 5)
	for i := range all {
		all[i] = shell(fmt.Sprint("c", i), ready)
		switch {
		case !chain:
		case i == 0:
			all[i].Command, all[i].Essential = []string{"echo done"}, new(bool)
		case i == 1:
			all[i].DependsOn = []taskdef.Dependency{{ContainerName: "c0", Condition: taskdef.ConditionSuccess}}
		default:
			all[i].DependsOn = []taskdef.Dependency{{ContainerName: fmt.Sprint("c", i-1), Condition: taskdef.ConditionStart}}
		}
	}
	return all
}

// BenchmarkTwoHundredTasks starts two hundred tasks of a sleep, and as many sleeps alone. Memory is the proportional
// share of all processes, the simulator's included, plus what the kernel cannot reclaim.
func BenchmarkTwoHundredTasks(b *testing.B) {
	const tasks = 200
	b.Run("localecs", func(b *testing.B) {
		var held float64
		for b.Loop() {
			b.StopTimer()
			before := settledKernel()
			w := newFixture(b, nil)
			b.StartTimer()
			var all []*Task
			for i := range tasks {
				c := shell("app", "")
				c.EntryPoint, c.Command = []string{"/bin/sleep", "600"}, nil
				all = append(all, start(b, w, i, c))
			}
			for _, task := range all {
				until(b, task, "RUNNING", running)
			}
			b.StopTimer()
			held += settledKernel() - before + processMemory(b)
			for _, task := range all {
				task.KillAll() // sleep as PID 1 ignores TERM
			}
			closeFixture(b, w)
			b.StartTimer()
		}
		b.ReportMetric(held/float64(b.N), "MB")
		b.ReportMetric(held/float64(b.N)/tasks, "MB/task")
	})
	b.Run("programs alone", func(b *testing.B) {
		var held float64
		for b.Loop() {
			b.StopTimer()
			kernel, processes := settledKernel(), processMemory(b)
			b.StartTimer()
			stop := startAlone(b, tasks, 0, "/bin/sleep", "600")
			b.StopTimer()
			held += settledKernel() - kernel + processMemory(b) - processes
			stop()
			b.StartTimer()
		}
		b.ReportMetric(held/float64(b.N), "MB")
	})
}

// BenchmarkMetadata lets a program in each task ask for /task as often as the ECS agent allows, 40 times a second, and
// a plain net/http server in the same task for the same bytes, in turns. An operation is one interval of ten seconds.
func BenchmarkMetadata(b *testing.B) {
	for _, tasks := range []int{10, 50} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			w := newTools(b, nil)
			var all []*Task
			for i := range tasks {
				app, plain := helper("app", "ask", plainAddress), helper("plain", "answer", plainAddress)
				plain.Essential = new(bool)
				app.DependsOn = []taskdef.Dependency{{ContainerName: "plain", Condition: taskdef.ConditionStart}}
				all = append(all, start(b, w, i, app, plain))
			}
			for _, task := range all {
				until(b, task, "RUNNING", running)
			}
			for b.Loop() {
				<-time.After(10 * time.Second)
			}
			took := map[string][]float64{}
			for i, task := range all {
				task.stop(scheduler.StopUserInitiated, "measured")
				wait(b, task)
				readLatencies(b, w.LogFile(taskName(i), "app"), took)
			}
			for server, ms := range took {
				slices.Sort(ms)
				for _, p := range []int{50, 99, 100} {
					b.ReportMetric(ms[(len(ms)*p+99)/100-1], fmt.Sprintf("%s-p%d-ms", server, p))
				}
			}
		})
	}
}

const plainAddress = "127.0.0.1:8080"

// askInTurns runs as the program of a task: every 25 ms a request, alternately to the metadata endpoint and to the
// plain server. SIGTERM makes it print how long each took.
func askInTurns(plain string) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	urls := []struct{ server, url string }{{"metadata", os.Getenv(awsutil.MetadataEnvVar) + "/task"}, {"plain", "http://" + plain}}
	tick := time.NewTicker(time.Second / 40)
	for _, err := get(urls[1].url); err != nil; _, err = get(urls[1].url) {
		<-tick.C // it starts beside this program
	}
	var lines bytes.Buffer
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-term:
			_, err := os.Stdout.Write(lines.Bytes())
			return err
		}
		u, begin := urls[i%2], time.Now()
		if _, err := get(u.url); err != nil {
			return err
		}
		fmt.Fprintln(&lines, u.server, float64(time.Since(begin))/float64(time.Millisecond))
	}
}

// answerMetadata answers with the bytes that the metadata endpoint once gave.
func answerMetadata(address string) error {
	body, err := get(os.Getenv(awsutil.MetadataEnvVar) + "/task")
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
}

func get(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

func readLatencies(b *testing.B, path string, took map[string][]float64) {
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var server string
		var ms float64
		if _, err := fmt.Sscan(lines.Text(), &server, &ms); err != nil {
			b.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		took[server] = append(took[server], ms)
	}
}

func taskName(i int) string { return fmt.Sprintf("task-%03d", i) }

func start(b *testing.B, w *fixture, i int, containers ...taskdef.Container) *Task {
	task, err := w.Run(taskName(i), &taskdef.TaskDefinition{Family: "bench", NetworkMode: "awsvpc", CPU: "256", Memory: "512", ContainerDefinitions: containers})
	if err != nil {
		b.Fatal(err)
	}
	return task
}

func closeFixture(b *testing.B, w *fixture) {
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// printed waits until the file has a line.
func printed(b *testing.B, path string) {
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if st, err := os.Stat(path); err == nil && st.Size() > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("%s: empty after %s", path, testkit.Patience)
		}
	}
}

// startAlone starts so many processes without a simulator and returns how to end them. A
// program that prints is waited for.
func startAlone(b *testing.B, n int, namespaces uintptr, args ...string) (stop func()) {
	var all []*exec.Cmd
	var outputs []io.Reader
	for range n {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		all, outputs = append(all, cmd), append(outputs, out)
	}
	if strings.Contains(strings.Join(args, " "), "echo") {
		for _, out := range outputs {
			if _, err := out.Read(make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
		}
	}
	return func() {
		for _, cmd := range all {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
}

// settledKernel returns the kernel's unreclaimable memory in MB once it has stopped falling: the kernel frees ended
// namespaces over seconds.
func settledKernel() float64 {
	last := kernelMemory()
	for range 15 {
		<-time.After(2 * time.Second)
		before := last
		if last = kernelMemory(); before-last < 1 {
			break
		}
	}
	return last
}

func kernelMemory() float64 {
	text, _ := os.ReadFile("/proc/meminfo")
	var sum float64
	for _, key := range []string{"SUnreclaim", "KernelStack", "PageTables", "Percpu"} {
		sum += kib(text, key)
	}
	return sum
}

// processMemory returns the proportional set size of this process and its descendants in MB.
func processMemory(b *testing.B) float64 {
	goruntime.GC()
	debug.FreeOSMemory()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	parents := map[int]int{}
	for _, path := range stats {
		text, _ := os.ReadFile(path) // none: it has ended
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, after, ok := strings.Cut(string(text), ") "); ok {
			parents[pid], _ = strconv.Atoi(strings.Fields(after)[1])
		}
	}
	var sum float64
	for pid := range parents {
		ancestor := pid
		for ancestor != os.Getpid() && ancestor > 1 {
			ancestor = parents[ancestor]
		}
		if ancestor == os.Getpid() {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
			sum += kib(text, "Pss")
		}
	}
	return sum
}

// kib returns a value in KiB of a /proc file, in MB.
func kib(text []byte, key string) float64 {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return n * 1024 / 1e6
		}
	}
	return 0
}
