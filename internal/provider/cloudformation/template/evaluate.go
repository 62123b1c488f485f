package template

import (
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// This file evaluates a template under its plan: it puts in the values that the operator fixed,
// decides the conditions that follow from them, and leaves open the values of users, platforms and
// targets.

// A digest stands for the value of a resource or condition that others refer to, so that a value
// with many references is not written out for each.
type digest struct {
	Sum   string   `json:"sum"`
	users []string // the users' parameters in the value
}

func digestOf(v any) digest { return digest{plan.Digest(encoded(v))[:12], unique(opens(v))} }

// once calls work the first time it is asked for a key, and returns the same result from then on.
// While work is under way, it returns nil, which ends circular references.
func (c *checker) once(key string, work func() any) any {
	if v, there := c.memo[key]; there {
		return v
	}
	c.memo[key] = nil
	c.memo[key] = work()
	return c.memo[key]
}

// open stands for a value that the plan leaves open.
type open struct {
	Source plan.Source `json:"source"`
}

// resolve evaluates a value. Nil stands for AWS::NoValue: templates have no null.
func (c *checker) resolve(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			if item = c.resolve(item); item != nil {
				list = append(list, item)
			}
		}
		return list
	case mapping:
		if name, argument, ok := call(v); ok {
			return c.function(name, argument)
		}
		object := make(mapping, len(v))
		for name, member := range v {
			if member = c.resolve(member); member != nil {
				object[name] = member
			}
		}
		return object
	}
	return v
}

// function evaluates a function. A function that stays open keeps its evaluated arguments.
func (c *checker) function(name string, argument any) any {
	text, _ := argument.(string)
	switch name {
	case "Ref":
		return c.ref(text)
	case "Condition":
		return c.condition(text)
	case "Fn::GetAtt":
		return mapping{name: argument, "of": c.made(refs(mapping{name: argument})[0])}
	case "Fn::If":
		return c.choose(argument)
	case "Fn::Sub":
		return c.sub(argument)
	}
	resolved := c.resolve(argument)
	list, _ := resolved.([]any)
	if v, done := computed(name, list); done {
		return v
	}
	if name == "Fn::FindInMap" && len(list) >= 3 {
		if v, found := c.find(list); found {
			return v // mappings contain no functions
		}
	}
	return mapping{name: resolved}
}

// ref evaluates Ref.
func (c *checker) ref(name string) any {
	if name == "AWS::NoValue" {
		return nil
	}
	p, is := c.declared[name]
	if !is {
		return mapping{"Ref": name, "of": c.made(name)}
	}
	s := c.Parameters[name]
	if s.Value == nil && p.fallback != nil {
		text, _ := plan.Text(p.fallback)
		s.Value = &text
	}
	if !c.isForeign(name) && s.Target == "" && s.Value != nil {
		return *s.Value
	}
	s.Secret = false
	return open{s}
}

// made stands for a resource that others refer to: if it changes, CloudFormation makes a new
// resource.
func (c *checker) made(name string) any {
	r, is := c.resources[name]
	if !is {
		return nil
	}
	return c.once("resource "+name, func() any { return digestOf(c.essence(r)) })
}

// essence returns the part of a resource that cannot change in place, with its type and its
// condition. For a custom resource, or an unknown type, it is the whole resource.
func (c *checker) essence(r resource) any {
	all := mapping{"type": r.kind}
	if r.condition != "" {
		all["if"] = c.condition(r.condition)
	}
	properties := c.resolve(r.properties)
	s, known := schemaOf(r.kind)
	if !known || isCustom(r.kind) {
		all["properties"] = properties
		return all
	}
	for _, path := range s.fixed {
		if v := project(properties, path); v != nil {
			all[strings.Join(path, "/")] = v
		}
	}
	return all
}

// project returns the value at a path, in which * stands for any item.
func project(v any, path []string) any {
	if len(path) == 0 {
		return v
	}
	switch v := v.(type) {
	case []any:
		rest := path
		if path[0] == "*" {
			rest = path[1:]
		}
		var list []any
		for _, item := range v {
			if item = project(item, rest); item != nil {
				list = append(list, item)
			}
		}
		if list != nil {
			return list
		}
	case mapping:
		if name, argument, ok := call(v); ok {
			if list, _ := argument.([]any); name == "Fn::If" && len(list) == 3 {
				return mapping{name: []any{list[0], project(list[1], path), project(list[2], path)}}
			}
			return v
		}
		if path[0] != "*" {
			return project(v[path[0]], path[1:])
		}
		object := mapping{}
		for name, member := range v {
			if member = project(member, path[1:]); member != nil {
				object[name] = member
			}
		}
		if len(object) > 0 {
			return object
		}
	case open:
		return v
	}
	return nil
}

// condition evaluates a condition by its name. The result is true, false, or a digest of what it
// depends on.
func (c *checker) condition(name string) any {
	return c.once("condition "+name, func() any {
		v := c.resolve(c.conditions[name])
		if _, decided := v.(bool); decided {
			return v
		}
		return digestOf(v)
	})
}

func (c *checker) choose(argument any) any {
	list, _ := argument.([]any)
	if len(list) != 3 {
		return nil
	}
	name, _ := list[0].(string)
	switch decided := c.condition(name); decided {
	case true:
		return c.resolve(list[1])
	case false:
		return c.resolve(list[2])
	default:
		return mapping{"Fn::If": []any{decided, c.resolve(list[1]), c.resolve(list[2])}}
	}
}

func (c *checker) sub(argument any) any {
	text, own := substitution(argument)
	names, pieces := placeholders(text)
	joined := []any{pieces[0]}
	for i, name := range names {
		v, is := own[name]
		switch resource, attribute, dotted := strings.Cut(name, "."); {
		case is:
			v = c.resolve(v)
		case dotted:
			v = c.function("Fn::GetAtt", []any{resource, attribute})
		default:
			v = c.ref(name)
		}
		joined = append(joined, v, pieces[i+1])
	}
	list := []any{"", joined}
	if v, done := computed("Fn::Join", list); done {
		return v
	}
	return mapping{"Fn::Join": list}
}

func (c *checker) find(list []any) (any, bool) {
	var v any = c.mappings
	for _, key := range list[:3] {
		object, _ := v.(mapping)
		text, ok := scalarText(key)
		if v, ok = object[text], ok && object[text] != nil; !ok {
			return nil, false
		}
	}
	return v, true
}

// opens returns the users' parameters in a value.
func opens(v any) (all []string) {
	walk(v, "", func(_ string, v any) {
		switch v := v.(type) {
		case open:
			if v.Source.Parameter != "" {
				all = append(all, v.Source.Parameter)
			}
		case digest:
			all = append(all, v.users...)
		}
	})
	return all
}

// change records which changes no update of an instance can make: the user's parameters that cause
// them, and a word for each resource that holds something.
func (c *checker) change() {
	words := []string{shapeStack}
	for name, r := range c.resources {
		if holdsNothing.MatchString(r.kind) || r.condition != "" && c.condition(r.condition) == false {
			continue
		}
		made := c.made(name).(digest)
		c.Fixed, words = append(c.Fixed, made.users...), append(words, name+"="+made.Sum)
	}
	slices.Sort(words)
	c.Fixed, c.Shape = unique(c.Fixed), strings.Join(words, " ")
}
