package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Nothing reads stderr or the events, and both pipes are soon full: ECS goes on, and
// Ctrl-C ends it.
func TestServeContinuesWithoutReaders(t *testing.T) {
	t.Parallel()
	fifo := t.TempDir() + "/events"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	reader, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	args := testkit.SelfArgs("localecs", "serve", "-simulated", "-json=false", "-throttle=false", "-events", fifo,
		"-timing", "attach=1ms,pull=1ms,start=1ms,stop=1ms,detach=1ms")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	ended := make(chan error, 1)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	exports := map[string]string{}
	lines := bufio.NewScanner(stdout)
	for exports["AWS_DEFAULT_REGION"] == "" && lines.Scan() {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		exports[name] = strings.Trim(value, "'")
	}
	client := ecs.New(ecs.Options{
		Region: exports["AWS_REGION"], BaseEndpoint: aws.String(exports["AWS_ENDPOINT_URL_ECS"]),
		Credentials: credentials.NewStaticCredentialsProvider(exports["AWS_ACCESS_KEY_ID"], exports["AWS_SECRET_ACCESS_KEY"], ""),
	})
	if _, err := client.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("web"), NetworkMode: types.NetworkModeAwsvpc, RequiresCompatibilities: []types.Compatibility{types.CompatibilityFargate},
		Cpu: aws.String("256"), Memory: aws.String("512"), ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("app"), Image: aws.String("app")}},
	}); err != nil {
		t.Fatal(err)
	}
	const tasks = 400 // of which each writes four lines
	network := &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}}}
	if _, err := client.CreateService(t.Context(), &ecs.CreateServiceInput{
		ServiceName: aws.String("web"), TaskDefinition: aws.String("web"), DesiredCount: aws.Int32(tasks), NetworkConfiguration: network,
	}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "all tasks run", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		out, err := client.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{"web"}})
		return err == nil && out.Services[0].RunningCount == tasks
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after Ctrl-C: %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("Ctrl-C does not end it")
	}
	var event map[string]any
	if line, err := bufio.NewReader(events).ReadBytes('\n'); err != nil || json.Unmarshal(line, &event) != nil {
		t.Errorf("first event %s, %v", line, err)
	}
}

// A reader of standard error that has stopped reading does not keep a command from
// writing its last line and ending.
func TestStuckReaderDoesNotKeepTheProcess(t *testing.T) {
	t.Parallel()
	reader, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	inv := &cli.Invocation{Stderr: stderr, Log: hclog.NewNullLogger()}
	ctx, cancel := context.WithCancel(t.Context())
	restore, err := lossyStderr(ctx, inv, "info", false)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 1000 { // more than a pipe holds
			fmt.Fprintln(inv.Stderr, strings.Repeat("x", 1000))
		}
		cancel()
		restore()
		fmt.Fprintln(inv.Stderr, "stopped by signal")
	}()
	select {
	case <-ended:
	case <-time.After(testkit.Patience):
		t.Fatal("blocked")
	}
}
