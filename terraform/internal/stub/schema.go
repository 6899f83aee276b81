package stub

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// DropVariable is the environment variable that removes one attribute or block from the
// schema ("aws_lb.subnets"), to prove that terraform validate notices.
const DropVariable = "STUB_DROP"

//go:embed schema/*.json
var schemas embed.FS

type attr struct {
	Type      json.RawMessage `json:"type"`
	Required  bool            `json:"required"`
	Optional  bool            `json:"optional"`
	Computed  bool            `json:"computed"`
	Sensitive bool            `json:"-"`

	typ tftypes.Type
}
type nested struct {
	Mode     string `json:"nesting_mode"`
	Block    *block `json:"block"`
	MinItems int64  `json:"min_items"`
	MaxItems int64  `json:"max_items"`
}
type block struct {
	Attributes map[string]*attr   `json:"attributes"`
	Blocks     map[string]*nested `json:"block_types"`

	typ tftypes.Object
}
type provider struct {
	Version   string            `json:"provider_version"`
	Provider  *block            `json:"provider"`
	Resources map[string]*block `json:"resource_schemas"`
	Data      map[string]*block `json:"data_source_schemas"`
}

// sensitive are attributes that the npm packages do not mark.
var sensitive = []string{
	"aws_secretsmanager_secret_version.secret_string", "random_bytes.base64", "random_bytes.hex",
	"tls_private_key.private_key_pem", "tls_private_key.private_key_openssh", "tls_private_key.private_key_pem_pkcs8",
	"tls_self_signed_cert.private_key_pem",
}

// load reads schema/<name>@<version>.json; name holds both, as in "aws@6.25.0".
func load(name string) (*provider, error) {
	raw, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("no schema for provider %q", name)
	}
	p := &provider{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("schema/%s.json: %w", name, err)
	}
	if p.Provider == nil {
		p.Provider = &block{}
	}
	if dropped := os.Getenv(DropVariable); dropped != "" {
		p.drop(strings.Split(dropped, "."))
	}
	for name, b := range p.Resources {
		for attr, a := range b.Attributes {
			a.Sensitive = slices.Contains(sensitive, name+"."+attr)
		}
	}
	for _, b := range p.all() {
		if err := b.init(); err != nil {
			return nil, fmt.Errorf("schema/%s.json: %w", name, err)
		}
	}
	return p, nil
}

// drop removes the attribute or block at a path.
func (p *provider) drop(path []string) {
	b := p.Resources[path[0]]
	for i, n := range path[1:] {
		if b == nil {
			return
		}
		if i == len(path)-2 {
			delete(b.Attributes, n)
			delete(b.Blocks, n)
		} else if c := b.Blocks[n]; c != nil {
			b = c.Block
		} else {
			return
		}
	}
}

func (p *provider) all() []*block {
	out := []*block{p.Provider}
	for _, m := range []map[string]*block{p.Resources, p.Data} {
		for _, b := range m {
			out = append(out, b)
		}
	}
	return out
}

func (b *block) init() error {
	b.typ.AttributeTypes = map[string]tftypes.Type{}
	for n, a := range b.Attributes {
		//lint:ignore SA1019 it reads the layout of `terraform providers schema -json`
		t, err := tftypes.ParseJSONType(a.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		a.typ = t
		b.typ.AttributeTypes[n] = t
	}
	for n, c := range b.Blocks {
		if err := c.Block.init(); err != nil {
			return fmt.Errorf("%s.%w", n, err)
		}
		switch c.Mode {
		case "list":
			b.typ.AttributeTypes[n] = tftypes.List{ElementType: c.Block.typ}
		case "set":
			b.typ.AttributeTypes[n] = tftypes.Set{ElementType: c.Block.typ}
		case "single":
			b.typ.AttributeTypes[n] = c.Block.typ
		default:
			return fmt.Errorf("%s: nesting mode %q", n, c.Mode)
		}
	}
	return nil
}

func (b *block) proto() *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for _, n := range slices.Sorted(maps.Keys(b.Attributes)) {
		a := b.Attributes[n]
		out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{
			Name: n, Type: a.typ, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive,
		})
	}
	modes := map[string]tfprotov5.SchemaNestedBlockNestingMode{
		"list": tfprotov5.SchemaNestedBlockNestingModeList, "set": tfprotov5.SchemaNestedBlockNestingModeSet,
		"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
	}
	for _, n := range slices.Sorted(maps.Keys(b.Blocks)) {
		c := b.Blocks[n]
		out.BlockTypes = append(out.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: n, Nesting: modes[c.Mode], Block: c.Block.proto(), MinItems: c.MinItems, MaxItems: c.MaxItems,
		})
	}
	return out
}
