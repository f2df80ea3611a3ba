//! Long chains of jobs.

use miserly_api::model::Submission;
use miserly_engine::DaemonRequest;

use super::life::{Life, job};

#[test]
fn explore() {
    let n: i64 = std::env::var("CHAIN").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    for policy in ["miser", "conservative", "easy"] {
        let mut life = Life::of_policy(policy, 2, 2);
        let begun = std::time::Instant::now();
        let first = life.submit(1, job(1, 20));
        let mut last = first;
        for _ in 1..n {
            last = life.submit(1, Submission { after: vec![last], ..job(1, 20) });
        }
        eprintln!("{policy}: submitted {n} in {:?}", begun.elapsed());
        let begun = std::time::Instant::now();
        let wide: Vec<i64> = (first..first + n * 5 / 6).collect();
        for _ in 0..n / 4 {
            life.submit(2, Submission { after: wide.clone(), ..job(1, 20) });
        }
        eprintln!("{policy}: submitted {} behind {} in {:?}", n / 4, wide.len(), begun.elapsed());
        let lines = life.lines().len();
        let begun = std::time::Instant::now();
        life.ask(3, DaemonRequest::Cancel { job: first, array: false }).unwrap();
        eprintln!("asked {:?}", begun.elapsed());
        life.end(4, first);
        eprintln!("{policy}: cancelled in {:?} with {} lines", begun.elapsed(), life.lines().len() - lines);
    }
}
