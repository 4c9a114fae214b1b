//! Prints TAP version 14 (testanything.org).

use std::{error::Error, fmt::Debug, process::ExitCode};

/// Ends a topic, because later steps depend on the failed one.
pub enum Failure {
    /// A step that has been printed.
    Step,
    /// A call that must succeed.
    Call(Box<dyn Error>),
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Call(error.into())
    }
}

pub type Outcome = Result<(), Failure>;

#[derive(Default)]
pub struct Report {
    count: u32,
    failed: u32,
}

impl Report {
    pub async fn topic(&mut self, topic: &'static str, body: impl AsyncFnOnce(&mut Steps<'_>) -> Outcome) {
        let outcome = body(&mut Steps { topic, report: self }).await;
        if let Err(Failure::Call(error)) = outcome {
            self.line(false, topic, &format!("{error}: {error:?}"));
        }
    }

    fn line(&mut self, holds: bool, name: &str, otherwise: &str) {
        self.count += 1;
        if holds {
            println!("ok {} - {name}", self.count);
        } else {
            self.failed += 1;
            println!("not ok {} - {name}\n  # {}", self.count, otherwise.replace('\n', " "));
        }
    }

    /// Prints the plan and returns the exit status.
    pub fn end(&self) -> ExitCode {
        println!("1..{}", self.count);
        ExitCode::from(u8::from(self.failed > 0))
    }
}

/// The steps of a topic.
pub struct Steps<'a> {
    topic: &'static str,
    report: &'a mut Report,
}

impl Steps<'_> {
    /// Prints whether a condition holds, and what was found if it does not.
    pub fn step(&mut self, name: &str, holds: bool, found: impl Debug) -> Outcome {
        self.report.line(holds, &format!("{}: {name}", self.topic), &format!("{found:?}"));
        if holds { Ok(()) } else { Err(Failure::Step) }
    }
}
