//! Prints TAP version 14 (testanything.org).

use std::error::Error;
use std::fmt;

#[derive(Default)]
pub struct Tap {
    topic: &'static str,
    count: usize,
    failed: usize,
}

/// Ends a topic, because later steps depend on the failed one.
#[derive(Debug)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an earlier step failed")
    }
}

impl Error for Broken {}

pub type Outcome = Result<(), Box<dyn Error>>;

impl Tap {
    pub async fn topic(
        &mut self,
        topic: &'static str,
        body: impl AsyncFnOnce(&mut Tap) -> Outcome,
    ) {
        self.topic = topic;
        match body(self).await {
            Ok(()) => {}
            Err(error) if error.is::<Broken>() => {}
            Err(error) => self.line(false, topic, &error),
        }
    }

    pub fn step(&mut self, name: &str, holds: bool, found: &dyn fmt::Debug) -> Result<(), Broken> {
        self.line(holds, &format!("{}: {name}", self.topic), found);
        if holds { Ok(()) } else { Err(Broken) }
    }

    fn line(&mut self, holds: bool, name: &str, found: &dyn fmt::Debug) {
        self.count += 1;
        if holds {
            println!("ok {} - {name}", self.count);
        } else {
            self.failed += 1;
            println!("not ok {} - {name}\n  # {found:?}", self.count);
        }
    }

    /// Prints the plan and returns the exit status.
    pub fn end(self) -> u8 {
        println!("1..{}", self.count);
        u8::from(self.failed > 0)
    }
}
