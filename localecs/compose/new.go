package compose

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Labels by which the endpoints find the containers of a project. A container
// without containerLabel holds its task's network.
const (
	taskLabel      = "com.meshtask.localecs.task"
	containerLabel = "com.meshtask.localecs.container"
)

const (
	// EndpointsService answers for ECS and AWS.
	EndpointsService = "endpoints"
	// endpointsNetwork is where it has network.MetadataIP. AWS's SDKs take credentials over plain HTTP from there and
	// from loopback addresses only, so no service name would do.
	endpointsNetwork = "ecs"
	endpointsSubnet  = "169.254.170.0/24"
	// AWSPort is where STS, IAM and ECS are.
	AWSPort = 8080
	// filesDir is where the endpoints find what is mounted for them.
	filesDir = "/localecs/"
	socket   = "/var/run/docker.sock"
)

// FileTask is a task of the project.
type FileTask struct {
	// Name is its name in the project, by which others find its address, too.
	Name string
	// Path is its definition's file as seen from the compose file's directory.
	Path string
	// Definition is valid.
	Definition *taskdef.TaskDefinition
}

// Options are what a file is made of.
type Options struct {
	Tasks []FileTask
	// Setting is the path of the file with account, region and roles as seen from
	// the compose file's directory; empty for none.
	Setting string
	// Region is that of the tasks.
	Region string
	// StartInterval writes start_interval where there is a start period: engines
	// before 25.0 and docker-compose 1 refuse it.
	StartInterval bool
}

// endpointID returns the last part of a container's metadata URIs. It is the same for
// every run, since it stands in the file.
func endpointID(task, container string) string { return task + "." + container }

// NewFile returns the file. The error has all mistakes.
func NewFile(o Options) (File, error) {
	b := &builder{Options: o, secrets: map[string]string{}}
	b.file = File{
		Services: map[string]Service{},
		Volumes:  map[string]struct{}{},
		Networks: map[string]Network{
			"default":        {},
			endpointsNetwork: {IPAM: map[string][]map[string]string{"config": {{"subnet": endpointsSubnet}}}},
		},
	}
	b.images = imageVariables(o.Tasks)
	b.add(EndpointsService, "", b.endpoints())
	for _, t := range o.Tasks {
		b.task(t)
	}
	return b.file, errors.Join(b.errs...)
}

type builder struct {
	Options
	file File
	errs []error
	// images are variables by image, secrets valueFrom by variable.
	images, secrets map[string]string
	// by is the origin of each service.
	by map[string]string
}

// add adds a service with a unique name to the file.
func (b *builder) add(name, of string, s Service) {
	if b.by == nil {
		b.by = map[string]string{}
	}
	if other, taken := b.by[name]; taken {
		b.errs = append(b.errs, fmt.Errorf("%s: service %s already exists for %s; rename the task, NAME=FILE", of, name, cmp.Or(other, "the endpoints")))
		return
	}
	b.by[name], b.file.Services[name] = of, s
}

// taskName matches names that are valid for services and in DNS.
var taskName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// task adds a task's services.
func (b *builder) task(t FileTask) {
	if !taskName.MatchString(t.Name) {
		b.errs = append(b.errs, fmt.Errorf("%s: task name %q: want lower-case letters, digits and hyphens; rename the task, NAME=FILE", t.Path, t.Name))
		return
	}
	b.warn(t, unexpressed(t.Definition, b.StartInterval))
	b.add(t.Name, t.Path, b.holder(t))
	for _, v := range t.Definition.Volumes {
		if v.Host == nil || v.Host.SourcePath == "" {
			b.file.Volumes[t.Name+"-"+v.Name] = struct{}{}
		}
	}
	for i, c := range t.Definition.ContainerDefinitions {
		b.add(serviceName(t.Name, c.Name), fmt.Sprintf("%s: $.containerDefinitions[%d]", t.Path, i), b.container(t, c))
	}
}

func serviceName(task, container string) string { return task + "-" + container }

// warn adds warnings about a definition, once for all its tasks.
func (b *builder) warn(t FileTask, notes []string) {
	for _, n := range notes {
		if w := t.Path + ": " + n; !slices.Contains(b.file.Warnings, w) {
			b.file.Warnings = append(b.file.Warnings, w)
		}
	}
}

// simulatorImage is localecs itself.
const simulatorImage = "${LOCALECS_IMAGE:-localecs:1.0.0-beta.1}"

// endpoints returns the service that all tasks wait for, and that stops last.
func (b *builder) endpoints() Service {
	s := Service{
		Image: simulatorImage, Entrypoint: []string{"/bin/localecs"}, Command: []string{"endpoints"}, User: "0:0",
		Networks: map[string]NetworkAttachment{"default": {}, endpointsNetwork: {IPv4Address: network.MetadataIP}},
		Environment: map[string]string{
			"CONSUL_HTTP_ADDR": "${CONSUL_HTTP_ADDR:-}", "CONSUL_HTTP_TOKEN": "${CONSUL_HTTP_TOKEN:-}",
		},
		Volumes: []string{"${DOCKER_SOCKET:-" + socket + "}:" + socket},
		HealthCheck: &HealthCheck{
			Test: []string{"CMD", "/bin/localecs", "endpoints", "-ready"}, Interval: "1s", Timeout: "5s", Retries: 30,
		},
	}
	if b.Setting != "" {
		s.Command = append(s.Command, "-setting", filesDir+"setting.yaml")
		s.Volumes = append(s.Volumes, dotted(b.Setting)+":"+filesDir+"setting.yaml:ro")
	}
	for _, t := range b.Tasks {
		file := filesDir + t.Name + ".json"
		s.Command = append(s.Command, t.Name+"="+file)
		s.Volumes = append(s.Volumes, dotted(t.Path)+":"+file+":ro")
	}
	return s
}

// dotted makes a relative path different from the name of a volume.
func dotted(path string) string {
	if path[0] == '/' || path[0] == '.' {
		return escape(path)
	}
	return "./" + escape(path)
}
