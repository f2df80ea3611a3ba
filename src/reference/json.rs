//! The page of the JSON documents, from the schema of a run and the document of the daemon's API.

use serde_json::Value;

use super::markdown::{anchor, code, escaped, table};
use super::names::Names;

/// Returns the schema of a run, and the document of the API.
fn schemas() -> (Value, Value) {
    let api = serde_json::from_str(&miserly_live::daemon::openapi());
    (serde_json::from_str(miserly_run::RUN_SCHEMA).expect("a schema"), api.expect("a document"))
}

pub(super) fn page() -> String {
    let (run, api) = schemas();
    format!(
        "# JSON documents\n\n\
         `a.b` is the field `b` of the object `a`.\n\
         `a[]` is each element of the list `a`, and `a.*` each value of the map `a`.\n\
         `?` marks a field that may be missing.\n\
         [formats.md](../formats.md) defines the measures.\n\
         {}{}",
        run_sections(&run),
        api_sections(&api)
    )
}

/// Returns each document with its fields and their types, and the requests of the API.
pub(super) fn names() -> Names {
    let (run, api) = schemas();
    let mut names = Names::default();
    names.add("a run", name_lines(&run));
    for (name, schema) in object(&run["$defs"]) {
        names.add(&format!("a run: {name}"), name_lines(schema));
    }
    let requests = routes(&api).map(|(path, method, operation)| {
        let parameters = list(&operation["parameters"]).iter().map(|of| text(&of["name"]));
        let parameters = format!("({})", parameters.collect::<Vec<_>>().join(" "));
        let [request, _, _, body, response] = route(path, method, operation);
        let parts = [request, parameters.replace("()", ""), body, format!("-> {response}")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    });
    names.add("requests", requests);
    for (name, schema) in object(&api["components"]["schemas"]) {
        names.add(name, name_lines(schema));
    }
    names
}

/// Returns the lines of a schema: its fields, its variants, or its type.
fn name_lines(schema: &Value) -> Vec<String> {
    let fields = properties(schema).into_iter();
    let fields = fields.flat_map(|(name, schema, optional)| rows(name, schema, optional));
    let lines: Vec<String> = fields.map(|[name, kind, _]| format!("{name} {kind}")).collect();
    match (&lines[..], list(&schema["oneOf"])) {
        ([], []) => vec![kind(schema)],
        ([], variants) => variants.iter().map(fields_in_line).collect(),
        _ => lines,
    }
}

/// Returns the document of a run: its fields, those of each object, and the shared schemas.
fn run_sections(schema: &Value) -> String {
    let (objects, fields): (Vec<_>, Vec<_>) =
        properties(schema).into_iter().partition(|(_, schema, _)| schema["properties"].is_object());
    let mut text = format!(
        "\n## A run: `miserly simulate --json`\n\n{}\n\n[simulate.schema.json](../simulate.schema.json) is the schema.\n\n{}",
        words(schema),
        table(FIELDS, fields.into_iter().flat_map(|(name, schema, optional)| rows(name, schema, optional)))
    );
    for (name, schema, optional) in objects {
        let missing = if optional { " It may be missing." } else { "" };
        text += &format!("\n### Run: `{name}`\n\n{}{missing}\n\n{}", words(schema), fields_of(schema));
    }
    for (name, schema) in object(&schema["$defs"]) {
        text += &format!("\n### {}\n\n{}\n\n{}", code(name), words(schema), content(schema));
    }
    text
}

/// Returns the API: its routes, and its schemas.
fn api_sections(document: &Value) -> String {
    let operations = routes(document).map(|(path, method, operation)| route(path, method, operation));
    let heads = ["request", "purpose", "parameters", "body", "response"];
    let mut text =
        format!("\n## The API of the daemon\n\n{}\n\n{}", words(&document["info"]), table(heads, operations));
    for (name, schema) in object(&document["components"]["schemas"]) {
        text += &format!("\n### {}\n\n{}\n\n{}", code(name), words(schema), content(schema));
    }
    text
}

const FIELDS: [&str; 3] = ["field", "type", "meaning"];

/// Returns each path, method and operation of the API.
fn routes(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let of_path = |(path, methods)| object(methods).map(move |(method, operation)| (path, method, operation));
    object(&document["paths"]).flat_map(of_path)
}

fn route(path: &str, method: &str, operation: &Value) -> [String; 5] {
    let parameter = |of: &Value| format!("`{}`: {}", text(&of["name"]), words(of));
    let parameters: Vec<String> = list(&operation["parameters"]).iter().map(parameter).collect();
    let of_content = |of: &Value| kind(&of["content"]["application/json"]["schema"]);
    let body = if operation["requestBody"].is_null() {
        String::new()
    } else {
        of_content(&operation["requestBody"])
    };
    let responses = object(&operation["responses"]);
    let response = |(status, of): (&String, &Value)| format!("{status}: {}", of_content(of));
    let purpose = [&operation["summary"], &operation["description"]].map(|of| escaped(text(of)));
    [
        format!("`{} {path}`", method.to_uppercase()),
        purpose.join(" "),
        parameters.join("<br>"),
        body,
        responses.map(response).collect::<Vec<_>>().join("<br>"),
    ]
}

/// Returns the content of a schema: its fields, its variants, or its values.
fn content(schema: &Value) -> String {
    if schema["properties"].is_object() {
        return fields_of(schema);
    }
    match list(&schema["oneOf"]) {
        [] => format!("Type: {}.\n", kind(schema)),
        variants => table(["one of", "meaning"], variants.iter().map(|of| [fields_in_line(of), words(of)])),
    }
}

/// Returns the fields of an object and of the objects in it as a table.
fn fields_of(schema: &Value) -> String {
    let fields = properties(schema).into_iter();
    table(FIELDS, fields.flat_map(|(name, schema, optional)| rows(name, schema, optional)))
}

/// Returns the fields of a variant in one cell.
fn fields_in_line(schema: &Value) -> String {
    let parts = list(&schema["allOf"]);
    if !parts.is_empty() {
        return parts.iter().map(fields_in_line).collect::<Vec<_>>().join("<br>");
    }
    let fields = properties(schema);
    if fields.is_empty() {
        return kind(schema);
    }
    let field = |(name, schema, optional): (&str, &Value, bool)| {
        format!("`{name}{}`: {}", if optional { "?" } else { "" }, kind(schema))
    };
    fields.into_iter().map(field).collect::<Vec<_>>().join("<br>")
}

/// Returns a row for a field, and one for each field of the objects in it.
fn rows(name: &str, schema: &Value, optional: bool) -> Vec<[String; 3]> {
    let mark = if optional { "?" } else { "" };
    let mut rows = vec![[code(&format!("{name}{mark}")), kind(schema), words(schema)]];
    let within = |path: &str, schema: &Value| {
        let fields = properties(schema).into_iter();
        fields
            .flat_map(|(field, schema, optional)| self::rows(&format!("{path}.{field}"), schema, optional))
            .collect::<Vec<_>>()
    };
    rows.extend(within(name, schema));
    rows.extend(within(&format!("{name}[]"), &schema["items"]));
    rows.extend(within(&format!("{name}.*"), &schema["additionalProperties"]));
    rows
}

/// Returns the fields of an object, and whether each may be missing. Required fields come first, in
/// the order of the schema.
fn properties(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required: Vec<&str> = list(&schema["required"]).iter().map(text).collect();
    let first = required.iter().filter_map(|&name| Some((name, schema["properties"].get(name)?, false)));
    let others = object(&schema["properties"]).filter(|(name, _)| !required.contains(&name.as_str()));
    first.chain(others.map(|(name, schema)| (name.as_str(), schema, true))).collect()
}

/// Returns the type of a value, with its limits.
fn kind(schema: &Value) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        let name = target.rsplit('/').next().unwrap_or(target);
        return format!("[`{name}`](#{})", anchor(name));
    }
    let values = list(&schema["enum"]).iter().chain(schema.get("const"));
    let values: Vec<String> = values.map(|value| code(&value.to_string())).collect();
    if !values.is_empty() {
        return values.join(" or ");
    }
    for (word, joined) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema[word].as_array() {
            return parts.iter().map(kind).collect::<Vec<_>>().join(joined);
        }
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(|of| named(text(of), schema)).collect(),
        of => vec![named(text(of), schema)],
    };
    let limits = [
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ];
    let limits = limits.iter().filter_map(|(limit, words)| Some(format!(", {words} {}", schema.get(limit)?)));
    types.join(" or ") + &limits.collect::<String>()
}

/// Returns a type of JSON in words.
fn named(of: &str, schema: &Value) -> String {
    match of {
        "array" if schema["items"].is_object() => format!("list of {}", kind(&schema["items"])),
        "array" if schema["prefixItems"].is_array() => {
            let each: Vec<String> = list(&schema["prefixItems"]).iter().map(kind).collect();
            format!("({})", each.join("; "))
        }
        "array" => "list".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        "" => "any".to_owned(),
        of => of.to_owned(),
    }
}

/// Returns the description of a schema.
fn words(schema: &Value) -> String {
    let inner = list(&schema["oneOf"]).iter().find_map(|of| of["description"].as_str());
    escaped(schema["description"].as_str().or(inner).unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
