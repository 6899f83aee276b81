package stub

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	tfaddr "github.com/hashicorp/terraform-registry-address"
)

type server struct {
	tfprotov5.ProviderServer // the RPCs that Terraform 1.11 never calls here stay nil
	p                        *provider
	region                   string
	defaultTags              map[string]tftypes.Value
	rules                    rules
}

// source returns the address under which Terraform looks for a provider of HashiCorp.
func source(name string) string {
	return tfaddr.NewProvider(tfaddr.DefaultProviderRegistryHost, "hashicorp", name).String()
}

// serve runs the stub of one provider ("aws", "random", ...) at one version.
func serve(name, version string) error {
	p, err := load(name + "@" + version)
	if err != nil {
		return err
	}
	s := &server{p: p, region: "us-east-1"}
	return tf5server.Serve(source(name), func() tfprotov5.ProviderServer { return s })
}

func (s *server) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	return nil, fmt.Errorf("not served")
}

func (s *server) GetProviderSchema(
	context.Context, *tfprotov5.GetProviderSchemaRequest,
) (*tfprotov5.GetProviderSchemaResponse, error) {
	out := &tfprotov5.GetProviderSchemaResponse{
		Provider:          &tfprotov5.Schema{Block: s.p.Provider.proto()},
		ResourceSchemas:   map[string]*tfprotov5.Schema{},
		DataSourceSchemas: map[string]*tfprotov5.Schema{},
		// Terraform asks once and not for each of its many providers in a test.
		ServerCapabilities: &tfprotov5.ServerCapabilities{GetProviderSchemaOptional: true},
	}
	for n, b := range s.p.Resources {
		out.ResourceSchemas[n] = &tfprotov5.Schema{Block: b.proto()}
	}
	for n, b := range s.p.Data {
		out.DataSourceSchemas[n] = &tfprotov5.Schema{Block: b.proto()}
	}
	return out, nil
}

func (s *server) PrepareProviderConfig(
	_ context.Context, r *tfprotov5.PrepareProviderConfigRequest,
) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (s *server) ConfigureProvider(
	_ context.Context, r *tfprotov5.ConfigureProviderRequest,
) (*tfprotov5.ConfigureProviderResponse, error) {
	v, err := r.Config.Unmarshal(s.p.Provider.typ)
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	must(v.As(&m))
	f := faker{obj: m}
	if reg := f.str("region"); reg != "" {
		s.region = reg
	} else if reg := os.Getenv("AWS_REGION"); reg != "" {
		s.region = reg
	}
	if dt, ok := m["default_tags"]; ok && dt.IsKnown() && !dt.IsNull() {
		var items []tftypes.Value
		must(dt.As(&items))
		for _, it := range items {
			var o map[string]tftypes.Value
			must(it.As(&o))
			if t := o["tags"]; t.IsKnown() && !t.IsNull() {
				must(t.As(&s.defaultTags))
			}
		}
	}
	return &tfprotov5.ConfigureProviderResponse{}, nil
}

func (s *server) StopProvider(
	context.Context, *tfprotov5.StopProviderRequest,
) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (s *server) ValidateResourceTypeConfig(
	_ context.Context, r *tfprotov5.ValidateResourceTypeConfigRequest,
) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	v, err := r.Config.Unmarshal(s.p.Resources[r.TypeName].typ)
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	must(v.As(&m))
	return &tfprotov5.ValidateResourceTypeConfigResponse{Diagnostics: checkNames(r.TypeName, m)}, nil
}

func (s *server) ValidateDataSourceConfig(
	context.Context, *tfprotov5.ValidateDataSourceConfigRequest,
) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

func (s *server) UpgradeResourceState(
	_ context.Context, r *tfprotov5.UpgradeResourceStateRequest,
) (*tfprotov5.UpgradeResourceStateResponse, error) {
	t := s.p.Resources[r.TypeName].typ
	v, err := r.RawState.UnmarshalWithOpts(t,
		tfprotov5.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}})
	if err != nil {
		return nil, err
	}
	d, err := tfprotov5.NewDynamicValue(t, v)
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: &d}, err
}

func (s *server) ReadResource(
	_ context.Context, r *tfprotov5.ReadResourceRequest,
) (*tfprotov5.ReadResourceResponse, error) {
	return &tfprotov5.ReadResourceResponse{NewState: r.CurrentState, Private: r.Private}, nil
}

func (s *server) PlanResourceChange(
	ctx context.Context, r *tfprotov5.PlanResourceChangeRequest,
) (*tfprotov5.PlanResourceChangeResponse, error) {
	b := s.p.Resources[r.TypeName]
	v, err := r.ProposedNewState.Unmarshal(b.typ)
	if err != nil {
		return nil, err
	}
	prior, err := r.PriorState.Unmarshal(b.typ)
	if err != nil {
		return nil, err
	}
	if !v.IsNull() && prior.IsNull() { // create: what the API decides is not known yet
		v = walk(b, v, "", false, func(_ string, t tftypes.Type) tftypes.Value {
			return tftypes.NewValue(t, tftypes.UnknownValue)
		})
	}
	v = s.tagsAll(b, v)
	d, err := tfprotov5.NewDynamicValue(b.typ, v)
	return &tfprotov5.PlanResourceChangeResponse{
		PlannedState: &d, PlannedPrivate: r.PriorPrivate, Diagnostics: validateResource(ctx, r.TypeName, v),
	}, err
}

// tagsAll does in the plan what the real provider does: tags_all = default_tags + tags.
func (s *server) tagsAll(b *block, v tftypes.Value) tftypes.Value {
	a := b.Attributes["tags_all"]
	if a == nil || v.IsNull() || b.Attributes["tags"] == nil {
		return v
	}
	var m map[string]tftypes.Value
	must(v.As(&m))
	if !m["tags"].IsFullyKnown() {
		return v
	}
	all := map[string]tftypes.Value{}
	for k, t := range s.defaultTags {
		all[k] = t
	}
	var own map[string]tftypes.Value
	must(m["tags"].As(&own))
	for k, t := range own {
		all[k] = t
	}
	m["tags_all"] = tftypes.NewValue(a.typ, all)
	return tftypes.NewValue(v.Type(), m)
}

func (s *server) ApplyResourceChange(
	ctx context.Context, r *tfprotov5.ApplyResourceChangeRequest,
) (*tfprotov5.ApplyResourceChangeResponse, error) {
	b := s.p.Resources[r.TypeName]
	v, err := r.PlannedState.Unmarshal(b.typ)
	if err != nil {
		return nil, err
	}
	prior, err := r.PriorState.Unmarshal(b.typ)
	if err != nil {
		return nil, err
	}
	out := &tfprotov5.ApplyResourceChangeResponse{
		Private: r.PlannedPrivate, Diagnostics: s.rules.apply(r.TypeName, prior, v),
	}
	if !v.IsNull() {
		var m map[string]tftypes.Value
		must(v.As(&m))
		out.Diagnostics = append(out.Diagnostics, validateResource(ctx, r.TypeName, v)...)
		f := faker{typ: r.TypeName, region: s.region, obj: m}
		v = walk(b, v, "", true, f.value)
	}
	if hasError(out.Diagnostics) {
		v = tftypes.NewValue(b.typ, nil)
	}
	d, err := tfprotov5.NewDynamicValue(b.typ, v)
	out.NewState = &d
	return out, err
}

func (s *server) ReadDataSource(
	_ context.Context, r *tfprotov5.ReadDataSourceRequest,
) (*tfprotov5.ReadDataSourceResponse, error) {
	b := s.p.Data[r.TypeName]
	v, err := r.Config.Unmarshal(b.typ)
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	must(v.As(&m))
	f := faker{typ: "data." + r.TypeName, region: s.region, obj: m}
	v = walk(b, v, "", false, f.value)
	d, err := tfprotov5.NewDynamicValue(b.typ, v)
	return &tfprotov5.ReadDataSourceResponse{State: &d}, err
}

func (s *server) ImportResourceState(
	context.Context, *tfprotov5.ImportResourceStateRequest,
) (*tfprotov5.ImportResourceStateResponse, error) {
	return nil, fmt.Errorf("import is not part of the stub")
}

func hasError(ds []*tfprotov5.Diagnostic) bool {
	for _, d := range ds {
		if d.Severity == tfprotov5.DiagnosticSeverityError {
			return true
		}
	}
	return false
}

func problem(attr, format string, args ...any) *tfprotov5.Diagnostic {
	d := &tfprotov5.Diagnostic{
		Severity: tfprotov5.DiagnosticSeverityError, Summary: "Invalid " + attr, Detail: fmt.Sprintf(format, args...),
	}
	d.Attribute = tftypes.NewAttributePath().WithAttributeName(attr)
	return d
}
