package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// byName asks STS as an SDK does that knows no endpoint variable, then each name in
// its arguments, without a signature and with net/http alone.
func byName(hosts []string) int {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	me, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(aws.ToString(me.Arn))
	for _, host := range hosts {
		request, err := http.NewRequest(http.MethodPost, "https://"+host+"/", nil)
		if err != nil {
			panic(err)
		}
		if strings.HasPrefix(host, "ecs.") {
			request.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListTasks")
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		fmt.Println(host, answer.StatusCode, errorName(err), strings.Contains(string(body), "MissingAuthenticationToken"), string(body) == "ECS")
		answer.Body.Close()
	}
	return run("0s", "0")
}

// withVariables adds to a container's environment.
func withVariables(c taskdef.Container, variables ...string) taskdef.Container {
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: name, Value: value})
	}
	return c
}

func TestAWSAnswersAtItsOwnNames(t *testing.T) {
	t.Parallel()
	for region, iam := range map[string]string{
		"us-east-1": "iam.amazonaws.com", "eu-west-1": "iam.amazonaws.com", "cn-northwest-1": "iam.cn-north-1.amazonaws.com.cn", "us-gov-east-1": "iam.us-gov.amazonaws.com",
	} {
		t.Run(region, func(t *testing.T) {
			t.Parallel()
			w := newTools(t, func(o *Options) { o.Region = region })
			w.endpoints.serveECS(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ECS") }))
			var asked, want []string
			for _, host := range w.options.AWS().Hosts() {
				answer := " 403 ok true false"
				if strings.HasPrefix(host, "ecs.") {
					answer = " 200 ok false true"
				}
				asked, want = append(asked, host), append(want, host+answer)
			}
			if !slices.Contains(asked, iam) {
				t.Errorf("%s is not among %q", iam, asked)
			}
			s := w.startTask(t, withRole, helper("a", append([]string{"byname"}, asked...)...))
			s.wantLines("a", append([]string{"arn:aws:sts::123456789012:assumed-role/web/" + s.ID()}, want...)...)
		})
	}
}

// boto3 has its own bundle, and the aws command is boto3's.
func TestBoto3FindsAWSByItsNames(t *testing.T) {
	t.Parallel()
	tools, err := filepath.EvalSymlinks(filepath.Join(testkit.Root(), ".tools", "aws"))
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newTools(t, func(o *Options) {
		o.Images["python"] = runtime.Image{
			Name:  "python",
			Files: map[string]string{"/usr": "/usr", "/lib": "/lib", "/lib64": "/lib64", "/bin": "/bin", "/aws": tools},
			Env:   []string{"PYTHONPATH=/aws"},
		}
	})
	const script = `
import boto3, time
print(boto3.client("sts").get_caller_identity()["Arn"])
print(boto3.client("iam").get_role(RoleName="web")["Role"]["RoleName"])
print("ready", time.time_ns(), flush=True)
time.sleep(600)`
	s := w.startTask(t, withRole, taskdef.Container{Name: "a", Image: "python", EntryPoint: []string{"/usr/bin/python3", "-s", "-c"}, Command: []string{script}})
	s.wantLines("a", "arn:aws:sts::123456789012:assumed-role/web/"+s.ID(), "web")
}

// A host network has no room for them: the port is an application's.
func TestAWSHasNoNamesOfItsOwnOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	w := onHost(t, nil)
	if addresses, exists := w.resolve("sts.us-east-1.amazonaws.com"); exists || w.endpoints.trust != "" {
		t.Errorf("addresses %v, trust %q", addresses, w.endpoints.trust)
	}
	s := w.startTask(t, withRole, printing("a"))
	if env := s.environment("a"); env["SSL_CERT_DIR"]+env["REQUESTS_CA_BUNDLE"]+env["NODE_EXTRA_CA_CERTS"] != "" {
		t.Errorf("environment %v", env)
	}
}

// A program that brings its own trust keeps it.
func TestOwnTrustOfAContainerIsKept(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s := w.startTask(t, withRole, withVariables(printing("a"), "SSL_CERT_DIR=/mine", "REQUESTS_CA_BUNDLE=/mine/ca.pem"))
	env := s.environment("a")
	for name, want := range map[string]string{
		"SSL_CERT_DIR": "/mine", "REQUESTS_CA_BUNDLE": "/mine/ca.pem", "NODE_EXTRA_CA_CERTS": trustFile,
	} {
		testkit.Equal(t, name, env[name], want)
	}
}

// OpenSSL finds the CA in the directory by its name.
func TestTrustFileHasTheHashOfTheCA(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		testkit.Missing(t, "openssl is not installed")
	}
	server, ca, err := NewCertificate([]string{"sts.amazonaws.com"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(openssl, "x509", "-hash", "-noout")
	cmd.Stdin = strings.NewReader(string(ca))
	hash, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(hash))+".0" != filepath.Base(trustFile) {
		t.Errorf("hash %s, %v, want the name of %s", hash, err, trustFile)
	}
	block, _ := pem.Decode(ca)
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	leaf, err := x509.ParseCertificate(server.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "sts.amazonaws.com", Roots: roots}); err != nil {
		t.Error(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: "s3.amazonaws.com", Roots: roots}); err == nil {
		t.Error("the certificate is for any name")
	}
}
