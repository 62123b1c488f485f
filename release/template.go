package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bootstrap is the name of the program in a function's folder, and in its zip.
const bootstrap = "bootstrap"

// zip returns the name of a function's zip.
func (r *release) zip(function, arch string) string {
	return fmt.Sprintf("longshore-%s_%s_%s.zip", function, r.version, arch)
}

// A template is a CloudFormation template. Members that are not named here stay as the CDK app wrote them.
type template map[string]json.RawMessage

// code is the place from which the template takes the code of a function.
type code struct {
	Bucket any `json:"S3Bucket"`
	Key    any `json:"S3Key"`
}

// stack writes the template of a deployment that takes the release's zips from a bucket of the
// operator's. The folder programs has the programs of the functions. It returns the compiled
// catalog for each function that reads it.
func (r *release) stack(ctx context.Context, programs, arch string) (catalogs map[string][]byte, err error) {
	out := filepath.Join(r.scratch, "stack")
	settings, err := json.Marshal(map[string]string{"code": programs, "architecture": arch, r.offer: "true"})
	if err != nil {
		return nil, err
	}
	env := append([]string{"CDK_OUTDIR=" + out, "CDK_CONTEXT_JSON=" + string(settings)}, fixed...)
	if _, err := output(ctx, filepath.Join(r.root, "infra"), env, goCommand(), "run", "."); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(out, "Longshore.template.json"))
	if err != nil {
		return nil, err
	}
	written, assets, err := r.published(raw)
	if err := r.write("longshore_"+r.version+"_template.json", written, err); err != nil {
		return nil, err
	}
	catalogs = map[string][]byte{}
	for function, asset := range assets {
		content, err := os.ReadFile(filepath.Join(out, "asset."+asset, "catalog.dat"))
		if err == nil {
			catalogs[function] = content
		} else if !errors.Is(err, os.ErrNotExist) { // the reaper reads no catalog
			return nil, err
		}
	}
	return catalogs, nil
}

// published turns the CDK's template into that of a release: parameters name the bucket with the zips,
// instead of the bucket of `cdk bootstrap`. It also returns the CDK's names of the zips, by function.
func (r *release) published(raw []byte) (out []byte, assets map[string]string, err error) {
	var t template
	var resources map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &t), json.Unmarshal(t["Resources"], &resources)); err != nil {
		return nil, nil, err
	}
	assets = map[string]string{}
	for id, resource := range resources {
		var is struct{ Type string }
		if err := json.Unmarshal(resource, &is); err != nil {
			return nil, nil, err
		}
		if is.Type != "AWS::Lambda::Function" {
			continue
		}
		for _, function := range functions {
			if !strings.HasPrefix(strings.ToLower(id), function+"function") {
				continue
			}
			if resources[id], assets[function], err = r.from(resource, function); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", id, err)
			}
		}
	}
	if len(assets) != len(functions) {
		return nil, nil, fmt.Errorf("the stack has the functions %v, not %v", assets, functions)
	}
	if t["Resources"], err = json.Marshal(resources); err != nil {
		return nil, nil, err
	}
	delete(t, "Rules") // they check the version of `cdk bootstrap`
	t["Parameters"] = json.RawMessage(`{
    "CodeBucket": {"Type": "String", "Description": "The bucket, in the region of the stack, that holds the zips of the release"},
    "CodePrefix": {"Type": "String", "Default": "", "Description": "What their keys begin with, such as longshore/"},
    "Architecture": {"Type": "String", "Default": "arm64", "AllowedValues": ["arm64", "x86_64"]}
  }`)
	if out, err = json.MarshalIndent(t, "", "  "); err != nil {
		return nil, nil, err
	}
	if strings.Contains(string(out), "cdk-") {
		return nil, nil, errors.New("the template names something of `cdk bootstrap`")
	}
	return append(out, '\n'), assets, nil
}

// from makes a function take its code from the release's zip; it returns the CDK's name of the zip.
func (r *release) from(resource json.RawMessage, function string) (changed json.RawMessage, asset string, err error) {
	var whole, properties map[string]json.RawMessage
	var was struct{ S3Key string }
	err = cmp.Or(json.Unmarshal(resource, &whole), json.Unmarshal(whole["Properties"], &properties),
		json.Unmarshal(properties["Code"], &was))
	if err != nil {
		return nil, "", err
	}
	key := "${CodePrefix}" + r.zip(function, "${Architecture}")
	properties["Code"], err = json.Marshal(code{map[string]string{"Ref": "CodeBucket"}, map[string]string{"Fn::Sub": key}})
	if err != nil {
		return nil, "", err
	}
	properties["Architectures"] = json.RawMessage(`[{"Ref": "Architecture"}]`)
	if whole["Properties"], err = json.Marshal(properties); err != nil {
		return nil, "", err
	}
	changed, err = json.Marshal(whole)
	return changed, strings.TrimSuffix(was.S3Key, ".zip"), err
}
