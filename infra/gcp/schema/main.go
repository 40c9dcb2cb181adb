// Command schema is a stand-in for Terraform's Google provider that knows the arguments of resources and nothing else. With it
// 'terraform validate' and plans with a mocked provider run where the provider cannot be downloaded. It is a module of its own,
// because only this check needs its libraries. 'make gcp-check' builds it.
//
// Its schema comes from the TypeScript declarations of the npm package @cdktf/provider-google, which are generated from the
// provider. They lack which arguments exclude each other, which values are valid, and which changes replace a resource.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func main() {
	server := func() tfprotov5.ProviderServer { return provider{} }
	if err := tf5server.Serve("registry.terraform.io/hashicorp/google", server); err != nil {
		log.Fatal(err)
	}
}

// provider implements the calls of validation. Others panic.
type provider struct{ tfprotov5.ProviderServer }

func (provider) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	return &tfprotov5.GetMetadataResponse{}, nil
}

func (provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	r := &tfprotov5.GetProviderSchemaResponse{
		ResourceSchemas: map[string]*tfprotov5.Schema{}, DataSourceSchemas: map[string]*tfprotov5.Schema{},
	}
	var err error
	if r.Provider, err = read("provider", "GoogleProvider"); err != nil {
		return nil, err
	}
	names, err := used()
	for _, m := range names {
		kind, name := m[1], m[2]
		folder, into := strings.TrimPrefix(name, "google_"), r.ResourceSchemas
		if kind == "data" {
			folder, into = "data_"+name, r.DataSourceSchemas
		}
		class := ""
		for part := range strings.SplitSeq(folder, "_") {
			class += strings.ToUpper(part[:1]) + part[1:]
		}
		if into[name], err = read(strings.ReplaceAll(folder, "_", "-"), class); err != nil {
			return nil, err
		}
	}
	return r, err
}

func (provider) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (provider) PrepareProviderConfig(_ context.Context, r *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

func (provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

var declared = regexp.MustCompile(`(?m)^(resource|data) "(google_[a-z0-9_]+)"`)

// used returns the matches of [declared] in the modules. Terraform starts a provider in the folder that it works on.
func used() (names [][]string, err error) {
	files, err := filepath.Glob("../../gcp/*/*.tf")
	own, _ := filepath.Glob("*.tf") // the pattern is good
	for _, f := range append(files, own...) {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		names = append(names, declared.FindAllStringSubmatch(string(text), -1)...)
	}
	return names, err
}

var (
	property = regexp.MustCompile(`(?m)^    readonly (\w+)(\??): ([^;]+);`)
	getter   = regexp.MustCompile(`(?m)^    get (\w+)\(\): ([^;]+);`)
	upper    = regexp.MustCompile(`[A-Z]`)
)

// read returns the schema of a resource, from the declarations of its class in a folder of the package.
func read(folder, class string) (*tfprotov5.Schema, error) {
	b, err := os.ReadFile(filepath.Join(os.Getenv("GOOGLE_PROVIDER_TYPES"), folder, "index.d.ts"))
	if err != nil {
		return nil, fmt.Errorf("GOOGLE_PROVIDER_TYPES names no folder with the types of %s: %w", class, err)
	}
	text := string(b)
	root := block(text, class+"Config")
	known := map[string]bool{}
	for _, a := range root.Attributes {
		known[a.Name] = true
	}
	// What the class returns and its configuration does not have is computed.
	for _, m := range getter.FindAllStringSubmatch(body(text, "export declare class "+class+" "), -1) {
		if t, name := attribute(m[2]), snake(m[1]); t != nil && !known[name] {
			root.Attributes = append(root.Attributes, &tfprotov5.SchemaAttribute{Name: name, Type: t, Computed: true})
		}
	}
	return &tfprotov5.Schema{Block: root}, nil
}

// body returns the declaration that starts with a text.
func body(text, start string) string {
	_, rest, _ := strings.Cut(text, start)
	out, _, _ := strings.Cut(rest, "\n}")
	return out
}

// block returns the schema of an interface. Members of the type of another interface are nested blocks.
func block(text, name string) *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for _, m := range property.FindAllStringSubmatch(body(text, "export interface "+name+" "), -1) {
		name, optional, kind := snake(m[1]), m[2] == "?", strings.TrimSuffix(m[3], " | cdktf.IResolvable")
		if t := attribute(kind); t != nil {
			out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{
				Name: name, Type: t, Optional: optional, Required: !optional, Computed: name == "id",
			})
			continue
		}
		nested := &tfprotov5.SchemaNestedBlock{TypeName: name, Nesting: tfprotov5.SchemaNestedBlockNestingModeList, MaxItems: 1}
		if !optional {
			nested.MinItems = 1
		}
		element := strings.TrimSuffix(kind, "[]")
		if element != kind {
			nested.MaxItems = 0
		}
		if name == "timeouts" {
			nested.Nesting, nested.MaxItems = tfprotov5.SchemaNestedBlockNestingModeSingle, 0
		}
		nested.Block = block(text, element)
		out.BlockTypes = append(out.BlockTypes, nested)
	}
	return out
}

// attribute returns Terraform's type of a TypeScript type; nil for objects.
func attribute(kind string) tftypes.Type {
	switch {
	case strings.HasPrefix(kind, "{"), kind == "cdktf.StringMap":
		return tftypes.Map{ElementType: tftypes.String}
	case kind == "string":
		return tftypes.String
	case kind == "number":
		return tftypes.Number
	case kind == "boolean", kind == "cdktf.IResolvable":
		return tftypes.Bool
	case kind == "string[]":
		return tftypes.List{ElementType: tftypes.String}
	case kind == "number[]":
		return tftypes.List{ElementType: tftypes.Number}
	}
	return nil
}

func snake(name string) string {
	return upper.ReplaceAllStringFunc(name, func(s string) string { return "_" + strings.ToLower(s) })
}
