//! Tests of the registry and of written forms.

use std::sync::Arc;

use miserly_core::{JobClasses, LengthClass, Machine, Procs, SizeClass, SizeTurn, Span};

use super::*;

/// A machine of 8 processors with the least that each policy needs: one class of jobs.
fn machine() -> Machine {
    let size = SizeClass { name: "any".into(), procs: Procs::new(8), memory: u64::MAX };
    let (time, name) = (Span::MAX, "any".into());
    let length = LengthClass { name, time, reserve_wait: None, most: None, first: false };
    let hosts = [("machine".to_owned(), vec![SizeTurn { size: 0, most: None }])].into();
    let classes = JobClasses { name: "classes".into(), sizes: vec![size], lengths: vec![length], hosts };
    Machine::plain(8).with_classes(Some(Arc::new(classes)))
}

#[track_caller]
fn check(text: &str, expect: Result<(&str, Promises), &str>) {
    match (text.parse::<PolicySpec>(), expect) {
        (Ok(spec), Ok((shown, promises))) => {
            assert_eq!((spec.to_string().as_str(), spec.promises()), (shown, promises));
            assert!(spec.build(&machine(), 0).is_ok());
        }
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (got, _) => panic!("{got:?}"),
    }
}

#[test]
fn written_forms() {
    check("fcfs", Ok(("fcfs", Promises::Nothing)));
    check("easy", Ok(("easy", Promises::Head)));
    check("easy(backfill=shortest)", Ok(("easy(backfill=shortest)", Promises::Head)));
    check(
        "easy(backfill=widest,order=shortest)",
        Ok(("easy(order=shortest, backfill=widest)", Promises::Nothing)),
    );
    check("conservative(order=longest)", Ok(("conservative(order=longest)", Promises::EveryJob)));
    check("lsf(reserve=false, user_limit=3)", Ok(("lsf(user_limit=3, reserve=false)", Promises::Nothing)));
    check(
        "fcfs(seed=7, weight=1e-6, draw=pass, order=random/length)",
        Ok(("fcfs(order=random/length, weight=1e-6, draw=pass, seed=7)", Promises::Nothing)),
    );
}

#[test]
fn examples_are_of_their_policy_and_in_its_written_form() {
    let registry = Registry::built_in();
    for policy in registry.policies() {
        for example in policy.examples {
            let spec: PolicySpec = example.policy.parse().unwrap();
            assert_eq!((spec.descriptor().name, spec.to_string().as_str()), (policy.name, example.policy));
        }
    }
}

#[test]
fn the_canonical_form_can_be_read() {
    let means = ["1.5"; 16].join(" ");
    let written = format!("tss(sf=2, means='{means}')");
    let shown = written.parse::<PolicySpec>().unwrap().to_string();
    assert_eq!(shown, written);
    assert_eq!(shown.parse::<PolicySpec>().unwrap().to_string(), written);
}

#[test]
fn orders_of_the_literature_and_formulas() {
    check("easy(order=lxf)", Ok(("easy(order=lxf)", Promises::Nothing)));
    check("easy(backfill=f1)", Ok(("easy(backfill=f1)", Promises::Head)));
    check(
        "easy( hold_head='true', order='wait/(log2( procs )*estimate)' )",
        Ok(("easy(order='wait / (log2(procs) * estimate)', hold_head=true)", Promises::Head)),
    );
    check(
        "conservative(order='max(user, -queue)')",
        Ok(("conservative(order='max(user, -queue)')", Promises::EveryJob)),
    );
    let twice = |text: &str| {
        text.parse::<PolicySpec>().unwrap().to_string().parse::<PolicySpec>().unwrap().to_string()
    };
    assert_eq!(twice("fcfs(order='memory^2+submit')"), "fcfs(order='memory ^ 2 + submit')");
}

#[test]
fn a_mistake_in_a_formula_has_a_position() {
    check(
        "easy(backfill='wait / estmate')",
        Err("policy easy, backfill: formula, character 8, at \"estmate\": unknown name \"estmate\", \
            did you mean \"estimate\"; known: wait, estimate, procs, submit, memory, user, queue"),
    );
    check("easy(order='')", Err("policy easy, order: formula, at its end: expected a value"));
    // A name is not a formula, nor a formula a name.
    check("easy(order='shortest')", Err("unknown name \"shortest\""));
    check("easy(order=wait)", Err("put the formula in quotes: order='wait'"));
    check("easy(weight='wait')", Err("weight cannot be \"wait\"; it must be a number"));
}

#[test]
fn a_tree_of_shares_and_its_order_need_each_other() {
    check(
        "easy(order='fair_tree', shares='2*(u1,3*g2)')",
        Ok(("easy(order='fair_tree', shares='2*(1*u1, 3*g2)')", Promises::Nothing)),
    );
    check("easy(order='fair_tree')", Err("fair_tree in an order and the parameter shares need each other"));
    check("easy(order=fair-share, shares='u1')", Err("need each other"));
    check(
        "easy(order='fair_tree', shares=u1)",
        Err("shares cannot be \"u1\"; it must be none, or a tree of shares"),
    );
    check(
        "easy(order='fair_tree', shares='2*u1, x')",
        Err(
            "policy easy, shares: character 7: expected shares, a user such as u7, a group such as g7, or a bracket",
        ),
    );
}

#[test]
fn a_half_life_needs_an_order_that_uses_usage() {
    check(
        "easy(order=fair-share, half_life=14d)",
        Ok(("easy(order=fair-share, half_life=14d)", Promises::Nothing)),
    );
    check(
        "easy(backfill='-usage', half_life=none)",
        Ok(("easy(backfill='-usage', half_life=none)", Promises::Head)),
    );
    check(
        "easy(half_life=7d)",
        Err("policy easy: half_life has no effect, because no order uses usage_share"),
    );
    check("easy(order=lxf, half_life=7d)", Err("remove it, or write order=fair-share"));
    check(
        "fcfs(order=fair-share, half_life=0)",
        Err("half_life cannot be \"0\"; it must be a duration of 1s or more"),
    );
    check("easy(order='usage_shore')", Err("did you mean \"usage_share\""));
    check("easy(order=fairshare)", Err("did you mean \"fair-share\""));
}

#[test]
fn every_policy_with_an_order_counts_usage_for_it() {
    let registry = Registry::built_in();
    let half_life = |text: &str| {
        let spec = text.parse::<PolicySpec>().unwrap();
        spec.build(&machine(), 0).unwrap().usage_half_life()
    };
    let mut found = 0;
    for policy in registry.policies() {
        let params = policy.params(&registry).unwrap();
        assert_eq!(half_life(policy.name), None, "{}", policy.name);
        for order in params.iter().filter(|param| matches!(param.domain, Domain::Order)) {
            let text = format!("{}({}=fair-share", policy.name, order.name);
            assert_eq!(half_life(&format!("{text})")), Span::from_secs(7 * 86_400), "{text}");
            assert_eq!(half_life(&format!("{text}, half_life=2h)")), Span::from_secs(7200), "{text}");
            assert_eq!(half_life(&format!("{text}, half_life=none)")), Some(Span::MAX), "{text}");
            found += 1;
        }
    }
    assert!(found >= 7, "{found}");
    assert_eq!(half_life("easy(order=fair-share, predict=last2)"), Span::from_secs(7 * 86_400));
    assert_eq!(half_life("immediate(policy='easy(order=fair-share)')"), Span::from_secs(7 * 86_400));
}

#[test]
fn mistakes_suggest_the_nearest_name() {
    check("eazy", Err("did you mean \"easy\""));
    check("conservatve", Err("did you mean \"conservative\""));
    check("qqq", Err("no policy \"qqq\"; `miserly policies` lists them"));
    check("fcfs(backfill=shortest)", Err("policy fcfs has no parameter \"backfill\"; it has order"));
    check("easy(oder=shortest)", Err("did you mean \"order\""));
    check("easy(order=short)", Err("did you mean \"shortest\""));
    check("easy(order=arrival, order=arrival)", Err("given twice"));
    check(
        "easy(draw=passs)",
        Err("draw cannot be \"passs\", did you mean \"pass\"; it must be one of once, pass"),
    );
    for weight in ["-1", "inf", "nan", "1e999", "much"] {
        check(&format!("easy(weight={weight})"), Err("it must be a number, 0 or more"));
    }
    check("easy(seed=-1)", Err("it must be a whole number, 0 or more"));
    check("easy(seed=18446744073709551616)", Err("it must be a whole number, 0 or more"));
}

#[test]
fn spellings_stand_for_parameters() {
    check("ns", Ok(("easy", Promises::Head)));
    check("soon", Ok(("immediate(preempt=false)", Promises::Nothing)));
    check("soon(quantum=2m)", Ok(("immediate(quantum=2m, preempt=false)", Promises::Nothing)));
    check(
        "srt(seed=3)",
        Ok(("ss(criterion=remaining, half_width=false, period=none, seed=3)", Promises::Nothing)),
    );
    check("srt(period=5m)", Ok(("ss(criterion=remaining, half_width=false, period=5m)", Promises::Nothing)));
    check("soom", Err("did you mean \"soon\""));
}

#[test]
fn every_declaration_is_sound() {
    let registry = Registry::built_in();
    let mut names: Vec<&str> = vec![];
    for policy in registry.policies() {
        names.push(policy.name);
        names.extend(policy.spellings.iter().map(|spelling| spelling.name));
        let params = policy.params(&registry).unwrap();
        let mut declared: Vec<&str> = params.iter().map(|param| param.name).collect();
        for (position, param) in params.iter().enumerate() {
            if let DefaultValue::SameAs(other) = param.default {
                assert!(declared[..position].contains(&other), "{}: {}", policy.name, param.name);
            }
        }
        declared.sort_unstable();
        declared.dedup();
        assert_eq!(declared.len(), params.len(), "{}: a parameter is declared twice", policy.name);
        for spelling in policy.spellings {
            assert!(PolicySpec::parse(spelling.name, &registry).is_ok(), "{}", spelling.name);
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is registered twice");
}

#[test]
fn parameters_decide_on_needs() {
    let needs = |text: &str| text.parse::<PolicySpec>().unwrap().needs();
    assert!(!needs("ss").swapping && needs("ss(overhead=write)").swapping);
    assert!(!needs("is").swapping && needs("is(overhead=write+read)").swapping);
    assert!(needs("immediate").suspension && !needs("soon").suspension);
    assert!(!needs("soon").checkpoints && needs("soon(keep_work=true)").checkpoints);
    assert!(needs("eqspatial(keep_work=true)").checkpoints);
}

#[test]
fn the_policy_needs_what_its_descriptor_declares() {
    let machine = machine();
    for descriptor in Registry::built_in().policies() {
        let policy = descriptor.name.parse::<PolicySpec>().unwrap().build(&machine, 0).unwrap();
        let needs = descriptor.needs;
        assert_eq!(policy.slices_time().is_some(), needs.time_slices, "{}", descriptor.name);
        let names = policy.names_pes() || policy.slices_time().is_some();
        assert_eq!(names, needs.named_processors, "{}", descriptor.name);
    }
}

#[test]
fn the_horizon_can_be_set() {
    let horizon = |text: &str| text.parse::<PolicySpec>().unwrap().with_horizon(Span::from_ticks(7_000_000));
    assert_eq!(horizon("miser").unwrap().to_string(), "miser(horizon=7s)");
    assert_eq!(horizon("miser").unwrap().horizon(), Some(Span::from_ticks(7_000_000)));
    assert!(horizon("miser(horizon=1d)").unwrap_err().to_string().contains("given twice"));
    assert!(horizon("easy").unwrap_err().to_string().contains("no parameter \"horizon\""));
    assert_eq!("miser(horizon=none)".parse::<PolicySpec>().unwrap().horizon(), None);
}

#[test]
fn a_policy_of_a_library_user() {
    static MINE: PolicyDescriptor =
        PolicyDescriptor { name: "mine", title: "test", ..crate::backfill::policies::EASY };
    let registry = Registry::built_in().with(&MINE);
    assert_eq!(registry.policies().count(), Registry::built_in().policies().count() + 1);
    let spec = PolicySpec::parse("immediate(policy='mine(hold_head=true)')", &registry).unwrap();
    assert_eq!(spec.to_string(), "immediate(policy='mine(hold_head=true)')");
    assert!("mine".parse::<PolicySpec>().is_err());
    let twice = registry.with(&MINE);
    assert_eq!(twice.policies().filter(|policy| policy.name == "mine").count(), 1);
}
