//! Any keys, on any terminal, while jobs come and go: a frame is drawn, and no request is sent without a confirmation.

use miserly_terminal::{Action, App};
use miserly_view::Job;
use proptest::prelude::*;
use ratatui::crossterm::event::KeyCode;

use crate::support::{PLAIN, drawn, ended, facts, job, posted, press, running, waiting};

fn code() -> impl Strategy<Value = KeyCode> {
    let letters = prop::sample::select("?lchreyn0m1234sS/NN+-tfgGjkpp 5é".chars().collect::<Vec<char>>());
    let others = prop::sample::select(vec![
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Enter,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Backspace,
    ]);
    prop_oneof![letters.prop_map(KeyCode::Char), others]
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let one = (0..4, 1i64..40, -500i64..500).prop_map(|(kind, number, minutes)| match kind {
        0 => running(number, "solve", true),
        1 => ended(number, "archive"),
        2 => job(number, "任務", false),
        _ => waiting(number, "mesh", minutes),
    });
    prop::collection::btree_map(0i64..40, one, 0..30).prop_map(|jobs| {
        let numbered = |(number, job): (i64, Job)| Job { number, label: number.to_string(), ..job };
        jobs.into_iter().map(numbered).collect()
    })
}

proptest! {
    #[test]
    fn any_keys(
        steps in prop::collection::vec((prop::collection::vec(code(), 1..12), jobs()), 1..5),
        (width, height) in (1u16..130, 1u16..60),
    ) {
        let mut app = App::new(posted(facts(vec![])), PLAIN);
        for (codes, jobs) in steps {
            app.post(posted(facts(jobs)));
            for code in codes {
                let action = press(&mut app, code);
                let sent = matches!(action, Some(Action::Ask(_)));
                prop_assert!(!sent || code == KeyCode::Char('y'));
                prop_assert!(action != Some(Action::Quit), "{code:?}");
                drawn(&mut app, width, height);
            }
        }
    }
}
