//! Every refusal is JSON with a reason.

use std::time::Duration;

use miserly_live::server::Limits;

use crate::server::{Answer, Server};

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, says: &str) {
    let problem = answer.json();
    assert_eq!((answer.status, problem["code"].as_str()), (status, Some(code)), "{answer:?}");
    let message = problem["message"].as_str().expect("a message");
    assert!(message.contains(says), "{message}");
}

#[test]
fn requests_that_make_no_sense() {
    let server = Server::new();
    let check = |method: &str, path: &str, body: &str, status, code, says: &str| {
        refused(&server.request(method, path, body), status, code, says);
    };
    check("GET", "/", "", 404, "not_found", "/v1/openapi.json");
    check("GET", "/v2/jobs", "", 404, "not_found", "/v2/jobs");
    check("GET", "/v1/jobs/1/explode", "", 404, "not_found", "explode");
    check("DELETE", "/v1/jobs/1", "", 405, "malformed", "DELETE");
    check("GET", "/v1/drain", "", 405, "malformed", "GET");
    check("BREW", "/v1/jobs", "", 405, "malformed", "BREW");
    check("GET", "/v1/jobs/twelve", "", 400, "malformed", "number");
    check("GET", "/v1/jobs/99999999999999999999", "", 400, "malformed", "number");
    check("GET", "/v1/jobs?wrong=1", "", 400, "malformed", "wrong");
    check("GET", "/v1/jobs?uid=-1", "", 400, "malformed", "uid");
    check("GET", "/v1/jobs?all=maybe", "", 400, "malformed", "all");
}

#[test]
fn bodies_that_make_no_sense() {
    let server = Server::new();
    let check = |path: &str, body: &str, says: &str| {
        refused(&server.request("POST", path, body), 400, "malformed", says);
    };
    check("/v1/jobs", "", "directory");
    check("/v1/jobs", "{", "EOF");
    check("/v1/jobs", "[]", "Submission");
    check("/v1/jobs", "{\"directory\": \"/\"}", "time");
    check("/v1/jobs", "{\"directory\": \"/\", \"time\": \"long\"}", "time");
    check("/v1/jobs", "{\"directory\": \"/\", \"time\": 1, \"cpus\": -1}", "cpus");
    check("/v1/jobs", "{\"directory\": \"/\", \"time\": 1, \"tpus\": 1}", "tpus");
    check("/v1/jobs", "{\"directory\": \"/\", \"time\": 1, \"begin\": \"soon\"}", "begin");
    check("/v1/jobs", "{\"directory\": \"/\", \"time\": 1} trailing", "trailing");
    check("/v1/jobs", &"[".repeat(100_000), "sequence");
    check("/v1/jobs", &format!("{{\"x\": {}", "[".repeat(100_000)), "unknown field");
    check("/v1/quote", "null", "null");
    check("/v1/drain", "{}", "on");
    check("/v1/jobs/1/extend", "{\"by\": null}", "by");
    check("/v1/jobs/1/cancel", "{\"array\": 1}", "array");
    assert!(server.fake.asked().is_empty(), "nothing of this is a question");
}

#[test]
fn bytes_that_are_no_text() {
    let server = Server::new();
    let request =
        b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\n\xff\xfe\0{";
    refused(&server.raw(request), 400, "malformed", "line 1");
}

#[test]
fn the_service_s_problems_have_a_fitting_status() {
    let server = Server::new();
    let codes = [
        (400, "malformed"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (422, "refused"),
        (503, "unavailable"),
        (507, "storage"),
        (500, "internal"),
    ];
    for (status, code) in codes {
        let path = format!("/v1/jobs/{status}");
        refused(&server.request("GET", &path, ""), status, code, &format!("no job {status}"));
    }
}

#[test]
fn a_body_that_is_too_large() {
    let server = Server::new();
    let body = format!("{{\"script\": \"{}\"}}", "x".repeat(5 << 20));
    refused(&server.request("POST", "/v1/jobs", &body), 413, "malformed", "4194304 bytes");
    // A body of unknown length has the same limit.
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let head = "POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    refused(
        &server.raw([head, &chunk.repeat(6), "0\r\n\r\n"].concat().as_bytes()),
        413,
        "malformed",
        "4194304",
    );
    assert!(server.fake.asked().is_empty());
}

/// There is no answer, or the status of a refusal. The next request is served.
#[test]
fn what_is_no_http() {
    let server = Server::within(Limits { timeout: Duration::from_secs(1), ..Limits::default() });
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    for bytes in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        tls,
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let answer = server.raw(bytes);
        assert!(answer.status == 0 || answer.status >= 400, "{answer:?}");
    }
    let header = format!("GET /v1/status HTTP/1.1\r\nhost: {}\r\n\r\n", "x".repeat(2 << 20));
    assert_eq!(server.raw(header.as_bytes()).status, 431);
    let many = format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(10_000));
    assert_eq!(server.raw(many.as_bytes()).status, 431);
    server.client().status().unwrap();
}
