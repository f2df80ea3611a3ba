//! The notation of conditions on other jobs.

use crate::model::{Condition, When};

use super::quantity::digits;

/// Parses conditions on other jobs: `12,13`, `ok:12,13,notok:14`, `each-ok:20`, `ok:name=prepare`, `ok:20_3`.
///
/// A kind applies to the jobs after it, up to the next kind. Without one, any end of a job counts. The notation of
/// sbatch is understood, too: `afterok:12:13,afterany:14`.
///
/// # Errors
/// Any other text.
pub fn after(text: &str) -> Result<Vec<Condition>, String> {
    if text.contains('?') {
        return Err(
            "conditions with ? between them cannot be written: all conditions have to hold".to_owned()
        );
    }
    let mut when = When::Any;
    let mut conditions = vec![];
    for part in text.split(',').map(str::trim) {
        let mut jobs = part;
        if let Some((word, rest)) = part.split_once(':').filter(|_| !part.starts_with(NAME)) {
            when = kind(word)?;
            jobs = rest;
        }
        if let Some(name) = jobs.strip_prefix(NAME) {
            conditions.push(named(when, name)?);
            continue;
        }
        for job in jobs.split(':') {
            conditions.push(numbered(when, job.trim())?);
        }
    }
    Ok(conditions)
}

const NAME: &str = "name=";

fn kind(word: &str) -> Result<When, String> {
    match word {
        "any" | "afterany" => Ok(When::Any),
        "ok" | "afterok" => Ok(When::Ok),
        "notok" | "afternotok" => Ok(When::NotOk),
        "each-ok" | "aftercorr" => Ok(When::EachOk),
        "after" => Err("the start of a job is no condition here; write any:JOB for its end".to_owned()),
        _ => Err(format!("{word:?} is no condition; write any:JOB, ok:JOB, notok:JOB or each-ok:ARRAY")),
    }
}

fn named(when: When, name: &str) -> Result<Condition, String> {
    if name.is_empty() {
        return Err("give the name of a job after name=".to_owned());
    }
    Ok(Condition { when, name: Some(name.to_owned()), ..Condition::default() })
}

fn numbered(when: When, text: &str) -> Result<Condition, String> {
    if text == "singleton" {
        return Err(
            "singleton is no condition here; write any:name=NAME, with the name of the job".to_owned()
        );
    }
    let (job, index) = match text.split_once('_') {
        Some((job, index)) => (digits(job), digits(index).map(Some)),
        None => (digits(text), Some(None)),
    };
    let (Some(job), Some(index)) = (job.filter(|job| *job > 0), index) else {
        return Err(format!(
            "{text:?} is no job; write its number, such as 12, ARRAY_INDEX, such as 12_3, or name=NAME, with commas between jobs"
        ));
    };
    Ok(Condition { when, job: Some(job), index, name: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(when: When, job: i64) -> Condition {
        Condition { when, job: Some(job), ..Condition::default() }
    }

    #[track_caller]
    fn check(text: &str, expect: &[Condition]) {
        assert_eq!(after(text).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn conditions() {
        check("12, 13", &[of(When::Any, 12), of(When::Any, 13)]);
        check("ok:12,13,notok:14", &[of(When::Ok, 12), of(When::Ok, 13), of(When::NotOk, 14)]);
        check("12,ok:13,any:14", &[of(When::Any, 12), of(When::Ok, 13), of(When::Any, 14)]);
        check("each-ok:20", &[of(When::EachOk, 20)]);
        let named = Condition { when: When::Ok, name: Some("a:b".into()), ..Condition::default() };
        check("ok:name=a:b,12", &[named.clone(), of(When::Ok, 12)]);
        check("name=a:b", &[Condition { when: When::Any, ..named }]);
        check("ok:20_3", &[Condition { index: Some(3), ..of(When::Ok, 20) }]);
    }

    #[test]
    fn the_notation_of_sbatch() {
        let two = [of(When::Ok, 12), of(When::Ok, 13)];
        check("afterok:12:13", &two);
        check(
            "afterok:12:13,afterany:14,afternotok:5",
            &[two[0].clone(), two[1].clone(), of(When::Any, 14), of(When::NotOk, 5)],
        );
        check("aftercorr:20", &[of(When::EachOk, 20)]);
    }

    #[test]
    fn what_is_no_condition() {
        for bad in [
            "",
            "0",
            "12,",
            "-1",
            "a",
            "ok:",
            "ok",
            "maybe:12",
            "after:12",
            "singleton",
            "afterok:12?afterok:13",
            "ok:name=",
            "12_",
            "_3",
            "12+5",
            "99999999999999999999",
        ] {
            assert!(after(bad).is_err(), "{bad:?}");
        }
        assert!(after("singleton").unwrap_err().contains("name=NAME"));
    }
}
