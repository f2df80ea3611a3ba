//! Any bytes as the body of a submission or as a script: refused with a message, or understood, and what is understood is
//! within the bounds that are promised.

#![no_main]

use jiff::Zoned;
use libfuzzer_sys::fuzz_target;
use miserly_api::model::Submission;
use miserly_api::submit::{Directives, directives};

/// What is read from a body is what is read from it once it has been written again.
fn judge_body(data: &[u8]) {
    match serde_json::from_slice::<Submission>(data) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(submission) => {
            let text = serde_json::to_vec(&submission).unwrap();
            assert_eq!(serde_json::from_slice::<Submission>(&text).unwrap(), submission);
        }
    }
}

fn judge_script(script: &str, now: &Zoned) {
    let lines = script.lines().count();
    let Directives { options, warnings } = match directives(script, now) {
        Ok(read) => read,
        Err(remark) => return assert!((1..=lines).contains(&remark.line) && !remark.message.is_empty()),
    };
    assert!(warnings.iter().all(|remark| (1..=lines).contains(&remark.line)));
    assert!(warnings.is_sorted_by_key(|remark| remark.line));
    assert!(options.time.is_none_or(|time| (1..=10_000_000_000).contains(&time)));
    assert!(options.cpus.is_none_or(|cpus| cpus.most > 0));
    assert!(options.memory_per_cpu.is_none_or(|bytes| bytes > 0));
    assert!(options.submission.memory.is_none_or(|bytes| bytes > 0));
    assert!(options.submission.array.is_none_or(|array| array.first <= array.last && array.step > 0));
    assert!(options.after.is_none_or(|conditions| {
        !conditions.is_empty() && conditions.iter().all(|of| of.job.is_none_or(|job| job > 0))
    }));
}

fuzz_target!(|data: &[u8]| {
    judge_body(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let now: Zoned = "2026-03-28T20:00:00+01:00[Europe/Berlin]".parse().unwrap();
        // So that not all inputs have to find the marks.
        for script in [text.to_owned(), format!("#MISERLY {text}"), format!("#SBATCH {text}")] {
            judge_script(&script, &now);
        }
    }
});
