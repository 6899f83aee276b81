package scenario

import (
	"fmt"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Create creates a service, which starts its tasks by and by.
func (f *Fleet) Create(name string, s file.Service) error {
	revision, err := f.revision(s.Definition)
	if err != nil {
		return err
	}
	_, err = f.region.Services().CreateService(f.region.Call(), s.Input(name, f.options.Cluster.Name, revision))
	return err
}

// Scale sets a service's desired count.
func (f *Fleet) Scale(name string, count int) error {
	return f.update(shapes.ServiceInput{Service: name, DesiredCount: &count})
}

// Deploy begins a deployment of the file's next revision, or, without a file, of
// what the service runs already.
func (f *Fleet) Deploy(name, definition string) error {
	in := shapes.ServiceInput{Service: name, ForceNewDeployment: definition == ""}
	if definition != "" {
		revision, err := f.register(definition)
		if err != nil {
			return err
		}
		in.TaskDefinition = revision
	}
	return f.update(in)
}

func (f *Fleet) update(in shapes.ServiceInput) error {
	in.Cluster = f.options.Cluster.Name
	_, err := f.region.Services().UpdateService(f.region.Call(), in)
	return err
}

// Delete deletes a service with its tasks.
func (f *Fleet) Delete(name string) error {
	_, err := f.region.Services().DeleteService(f.region.Call(), shapes.DeleteServiceInput{Cluster: f.options.Cluster.Name, Service: name, Force: true})
	return err
}

// Service is how a service is now.
func (f *Fleet) Service(name string) (shapes.Service, error) {
	out, err := f.region.Services().DescribeServices(f.region.Call(), shapes.DescribeServicesInput{Cluster: f.options.Cluster.Name, Services: []string{name}})
	if err != nil {
		return shapes.Service{}, err
	}
	if len(out.Services) == 0 {
		return shapes.Service{}, fmt.Errorf("service %s does not exist", name)
	}
	return out.Services[0], nil
}

// SoFar says in a few words how far a service is.
func SoFar(s shapes.Service) string {
	text := fmt.Sprintf("%d of %d running", s.RunningCount, s.DesiredCount)
	if s.PendingCount > 0 {
		text += fmt.Sprintf(", %d pending", s.PendingCount)
	}
	if len(s.Deployments) > 1 {
		text += fmt.Sprintf(", %d deployments", len(s.Deployments))
	}
	return text
}
