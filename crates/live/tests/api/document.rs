//! The document of the API is true: every listed route is served, and every answer fits its schema.

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::server::Server;

fn document(server: &Server) -> Value {
    let answer = server.request("GET", "/v1/openapi.json", "");
    assert_eq!(answer.status, 200);
    answer.json()
}

/// Returns every operation of the document: its method, its path, and its content.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods").iter();
        methods
            .map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// Returns a body that fits a route.
fn body(path: &str) -> &'static str {
    match path {
        "/v1/jobs" | "/v1/quote" => r#"{"directory": "/", "time": 60}"#,
        "/v1/jobs/{n}/extend" => r#"{"by": 60}"#,
        "/v1/jobs/{n}/resize" => r#"{"cpus": 2}"#,
        "/v1/jobs/change" => r#"{"change": "cancel", "select": {"jobs": ["1-3", "4[0-2]"]}}"#,
        "/v1/what-if" => r#"{"policy": "easy"}"#,
        "/v1/jobs/{n}/signal" => r#"{"signal": "USR1"}"#,
        "/v1/jobs/{n}/modify" => r#"{"changes": {"cpus": 2}}"#,
        "/v1/jobs/{n}/preview" => r#""hold""#,
        "/v1/reservations" => {
            r#"{"name": "course", "cpus": 1, "times": [{"from": "2026-01-01T08:00:00Z", "to": "2026-01-01T09:00:00Z"}]}"#
        }
        "/v1/jobs/{n}/steps" => r#"{"name": "solve", "tasks": 2, "cpus": 4}"#,
        "/v1/jobs/{n}/steps/end" => r#"{"step": 1, "exit": {"code": 0}}"#,
        "/v1/reservations/remove" => r#"{"name": "course"}"#,
        "/v1/drain" | "/v1/hold-starts" => r#"{"on": true}"#,
        _ => "",
    }
}

/// Returns the events of a stream, each with its name in its data.
fn events(body: &str) -> Vec<Value> {
    let event = |text: &str| {
        let (name, data) = text.split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name");
        let mut data: Value = serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        data["event"] = name.into();
        data
    };
    body.split_terminator("\n\n").map(event).collect()
}

/// Checks that an answer fits a schema of the document.
#[track_caller]
fn check(document: &Value, schema: &Value, answer: &Value, place: &str) {
    let mut whole = document.clone();
    whole["answer"] = schema.clone();
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.enable_format_assertions();
    compiler.add_resource("http://miserly/openapi.json", whole).expect("a document");
    let index = compiler.compile("http://miserly/openapi.json#/answer", &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(answer, index) {
        panic!("{place}: {error:#}\n{answer:#}");
    }
}

#[test]
fn every_documented_route_is_served_and_answers_as_documented() {
    let server = Server::new();
    let document = document(&server);
    let operations = operations(&document);
    assert_eq!(operations.len(), 34);
    for (method, path, operation) in operations {
        if path.ends_with("/attach") {
            // Its response is no document: `attach` has its tests.
            continue;
        }
        let answer = server.request(&method, &path.replace("{n}", "1"), body(&path));
        let place = format!("{method} {path}");
        let documented = &operation["responses"][answer.status.to_string()];
        assert!(documented.is_object(), "{place}: {answer:?}");
        let content = documented["content"].as_object().expect("content");
        let (kind, content) = content.iter().next().expect("a media type");
        let values = match &kind[..] {
            "text/event-stream" => events(&answer.body),
            "application/openmetrics-text" | "application/octet-stream" => vec![answer.body.clone().into()],
            _ => vec![answer.json()],
        };
        for value in values {
            check(&document, &content["schema"], &value, &place);
        }
    }
}

#[test]
fn problems_are_as_documented() {
    let server = Server::new();
    let document = document(&server);
    let problem = &document["components"]["schemas"]["Problem"];
    for (method, path) in
        [("GET", "/nowhere"), ("PUT", "/v1/jobs"), ("POST", "/v1/jobs"), ("GET", "/v1/jobs/409")]
    {
        check(&document, problem, &server.request(method, path, "").json(), path);
    }
    for (method, path, operation) in operations(&document) {
        let documented = path == "/v1/openapi.json" || operation["responses"]["default"].is_object();
        assert!(documented, "{method} {path}");
    }
}

/// The checks above can fail.
#[test]
#[should_panic(expected = "GET /v1/jobs/{n}")]
fn an_answer_that_is_not_as_documented_is_found() {
    let document = document(&Server::new());
    let schema = json!({"$ref": "#/components/schemas/JobView"});
    check(&document, &schema, &json!({"number": "one"}), "GET /v1/jobs/{n}");
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn follow(document: &Value, value: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(place)) = object.get("$ref") {
                    assert!(document.pointer(place.trim_start_matches('#')).is_some(), "{place}");
                }
                object.values().for_each(|value| follow(document, value));
            }
            Value::Array(array) => array.iter().for_each(|value| follow(document, value)),
            _ => {}
        }
    }
    let document = document(&Server::new());
    follow(&document, &document);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
}
