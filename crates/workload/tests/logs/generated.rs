//! Logs of random comments, blank lines and jobs.

use miserly_workload::Trace;
use miserly_workload::generate::{MODELS, ModelOptions};
use proptest::prelude::*;

use super::assert_round_trip;

/// Returns a whole number as it may occur in some field.
fn whole() -> impl Strategy<Value = String> {
    prop_oneof![4 => -1..100_000_i64, 1 => Just(-1), 1 => 0..4_294_967_296_i64].prop_map(|n| n.to_string())
}

/// Returns a value of field 6: whole, or with any number of decimals.
fn decimal() -> impl Strategy<Value = String> {
    prop_oneof![whole(), "[0-9]{1,6}\\.[0-9]{0,8}", "\\.[0-9]{1,4}", Just("-1".to_owned())]
}

fn blanks() -> impl Strategy<Value = String> {
    "[ \t]{1,4}"
}

/// Returns eighteen fields separated and perhaps surrounded by blanks.
fn job() -> impl Strategy<Value = String> {
    let fields = (prop::collection::vec((whole(), blanks()), 18), decimal(), "[ \t]{0,3}");
    fields.prop_map(|(fields, decimal, indent)| {
        let texts = fields.into_iter().enumerate().map(|(index, (whole, blanks))| {
            let field = if index == 5 { decimal.clone() } else { whole };
            if index == 17 { field } else { field + &blanks }
        });
        indent + &texts.collect::<String>()
    })
}

fn comment() -> impl Strategy<Value = String> {
    prop_oneof!["[ \t]{0,2};[ -~]{0,40}", "; [A-Z][a-z]{2,8}: [ -~äß€]{0,20}"]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![6 => job(), 2 => comment(), 1 => "[ \t]{0,3}"]
}

fn log() -> impl Strategy<Value = String> {
    let end = prop_oneof![3 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line(), end), 0..40), any::<bool>()).prop_map(|(lines, ended)| {
        let text: String = lines.into_iter().map(|(line, end)| line + end).collect();
        let unended = text.trim_end_matches(['\r', '\n']);
        if ended { text } else { unended.to_owned() }
    })
}

proptest! {
    #[test]
    fn round_trip(text in log()) {
        assert_round_trip(&text, &Trace::memory("made up", text.clone().into()));
    }
}

#[test]
fn round_trip_of_every_model() {
    for entry in MODELS {
        let model = (entry.build)(&ModelOptions { seed: Some(7), ..ModelOptions::default() }).unwrap();
        let mut text = Vec::new();
        model.generate().unwrap().write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_round_trip(&text, &Trace::memory(entry.name, text.clone().into()));
    }
}
