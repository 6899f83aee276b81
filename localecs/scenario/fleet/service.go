package fleet

import (
	"fmt"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/scenario/file/wish"
)

// Create creates a service, which starts its tasks by and by.
func (f *Fleet) Create(name string, s wish.Service) error {
	revision, err := f.revision(s.Definition)
	if err != nil {
		return err
	}
	_, err = f.region.Services().CreateService(f.call(), s.Input(name, f.options.Cluster.Name, revision))
	return err
}

// Scale sets a service's desired count.
func (f *Fleet) Scale(name string, count int) error {
	return f.update(ecs.ServiceInput{Service: name, DesiredCount: &count})
}

// Deploy begins a deployment of the file's next revision, or, without a file, of
// what the service runs already.
func (f *Fleet) Deploy(name, definition string) error {
	in := ecs.ServiceInput{Service: name, ForceNewDeployment: definition == ""}
	if definition != "" {
		revision, err := f.register(definition)
		if err != nil {
			return err
		}
		in.TaskDefinition = revision
	}
	return f.update(in)
}

func (f *Fleet) update(in ecs.ServiceInput) error {
	in.Cluster = f.options.Cluster.Name
	_, err := f.region.Services().UpdateService(f.call(), in)
	return err
}

// Delete deletes a service with its tasks.
func (f *Fleet) Delete(name string) error {
	_, err := f.region.Services().DeleteService(f.call(), ecs.DeleteServiceInput{Cluster: f.options.Cluster.Name, Service: name, Force: true})
	return err
}

// Service is how a service is now.
func (f *Fleet) Service(name string) (ecs.Service, error) {
	out, err := f.region.Services().DescribeServices(f.call(), ecs.DescribeServicesInput{Cluster: f.options.Cluster.Name, Services: []string{name}})
	if err != nil {
		return ecs.Service{}, err
	}
	if len(out.Services) == 0 {
		return ecs.Service{}, fmt.Errorf("service %s does not exist", name)
	}
	return out.Services[0], nil
}

// SoFar says in a few words how far a service is.
func SoFar(s ecs.Service) string {
	text := fmt.Sprintf("%d of %d running", s.RunningCount, s.DesiredCount)
	if s.PendingCount > 0 {
		text += fmt.Sprintf(", %d pending", s.PendingCount)
	}
	if len(s.Deployments) > 1 {
		text += fmt.Sprintf(", %d deployments", len(s.Deployments))
	}
	return text
}
