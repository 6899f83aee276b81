package setup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestMethodKeepsOperatorSettings: the old program wrote the whole
// method from its own defaults.
func TestMethodKeepsOperatorSettings(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{Partition: "ecs"})
	f := made(t, s, func(f *Observed) {
		m := f.Methods[config.ServiceAuthMethod]
		m.Description, m.DisplayName, m.TokenLocality, m.TokenNameFormat = "mine", "Mine", "global", "${x}"
		m.MaxTokenTTL = time.Hour
		m.NamespaceRules = []*api.ACLAuthMethodNamespaceRule{{BindNamespace: "theirs"}}
		m.Config = map[string]any{
			"BoundIAMPrincipalARNs":  []any{"arn:aws:iam::9:role/z", "arn:aws:iam::9:user/a"},
			"EnableIAMEntityDetails": false,
			"IAMEntityTags":          []any{"team", "consul.hashicorp.com.service-name"},
			"ServerIDHeaderValue":    "consul.example", "MaxRetries": 3.0,
			"IAMEndpoint": "https://iam.example", "STSEndpoint": "https://sts.example",
			"AllowedSTSHeaderValues": []any{"X-Extra"}, "OfALaterVersion": map[string]any{"a": 1.0},
		}
	})
	p := s.compare(f)
	if diff := cmp.Diff([]string{
		"auth method iam-ecs-service-token BoundIAMPrincipalARNs +" + ours +
			" EnableIAMEntityDetails IAMEntityTags NamespaceRules",
	}, steps(p)); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	want := &api.ACLAuthMethod{
		Name: config.ServiceAuthMethod, Type: "aws-iam", Description: "mine",
		DisplayName: "Mine", TokenLocality: "global", TokenNameFormat: "${x}",
		MaxTokenTTL: time.Hour,
		NamespaceRules: []*api.ACLAuthMethodNamespaceRule{
			{BindNamespace: "theirs"},
			{Selector: `entity_tags["consul.hashicorp.com.namespace"] != ""`,
				BindNamespace: "${entity_tags.consul.hashicorp.com.namespace}"},
		},
		Config: map[string]any{
			"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::9:role/z", "arn:aws:iam::9:user/a", ours},
			"EnableIAMEntityDetails": true,
			"IAMEntityTags": []string{"team", "consul.hashicorp.com.service-name",
				"consul.hashicorp.com.namespace"},
			"ServerIDHeaderValue": "consul.example", "MaxRetries": 3.0,
			"IAMEndpoint": "https://iam.example", "STSEndpoint": "https://sts.example",
			"AllowedSTSHeaderValues": []any{"X-Extra"}, "OfALaterVersion": map[string]any{"a": 1.0},
		},
	}
	if diff := cmp.Diff(want, p.Writes[0].Value); diff != "" {
		t.Errorf("method (-want +got):\n%s", diff)
	}
}

// TestOrderIsNoDifference: a stored list that was not sorted made the
// old program write at every start.
func TestOrderIsNoDifference(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{})
	for name, have := range map[string]map[string]any{
		"unsorted, twice": {
			"BoundIAMPrincipalARNs": []any{"arn:z", ours, "arn:a", ours}, "EnableIAMEntityDetails": true,
			"IAMEntityTags": []any{"z", config.TagServiceName, config.TagNamespace, "a"},
		},
		"letter case of keys, weak types": {
			"boundiamprincipalarns": []any{ours}, "ENABLEIAMENTITYDETAILS": "true",
			"iamEntityTags": []any{config.TagServiceName, config.TagNamespace},
		},
		"a number for true": {
			"BoundIAMPrincipalARNs": ours, "EnableIAMEntityDetails": 1.0,
			"IAMEntityTags": []string{config.TagServiceName, config.TagNamespace},
		},
	} {
		f := made(t, s, func(f *Observed) { f.Methods[config.ServiceAuthMethod].Config = have })
		if got := steps(s.compare(f)); len(got) > 0 {
			t.Errorf("%s: writes %q", name, got)
		}
	}
}

func TestMethodConfigInOtherWords(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{})
	for name, c := range map[string]struct{ have, want map[string]any }{
		"no config": {nil, map[string]any{
			"BoundIAMPrincipalARNs": []string{ours}, "EnableIAMEntityDetails": true,
			"IAMEntityTags": []string{config.TagNamespace, config.TagServiceName},
		}},
		"a lone string, and keys in other letters": {
			map[string]any{"boundIAMPrincipalArns": "arn:a", "enableiamentitydetails": "no", "iamentitytags": ""},
			map[string]any{
				"boundIAMPrincipalArns": []string{"arn:a", ours}, "enableiamentitydetails": true,
				"iamentitytags": []string{config.TagNamespace, config.TagServiceName},
			}},
	} {
		f := made(t, s, func(f *Observed) { f.Methods[config.ServiceAuthMethod].Config = c.have })
		p := s.compare(f)
		if len(p.Writes) != 1 {
			t.Errorf("%s: writes %q", name, steps(p))
			continue
		}
		if diff := cmp.Diff(c.want, p.Writes[0].Value.(*api.ACLAuthMethod).Config); diff != "" {
			t.Errorf("%s: config (-want +got):\n%s", name, diff)
		}
	}
}

func TestMethodOfAnotherType(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{})
	f := made(t, s, func(f *Observed) {
		f.Methods[config.ClientAuthMethod].Type = "jwt"
		f.Rules[config.ServiceAuthMethod] = f.Rules[config.ServiceAuthMethod][1:] // the record
	})
	p := s.compare(f)
	testkit.ErrorContains(t, p.Refused[Object{kindMethod, config.ClientAuthMethod}], `has type "jwt"`)
	testkit.Equal(t, "refused objects", len(p.Refused), 1)
	if got := steps(p); len(got) != 1 {
		t.Errorf("the rest is not planned: %q", got)
	}
}
