package interop;

/** Prints TAP version 14 (testanything.org). */
final class Tap {
  private int count;
  private int failed;

  interface Topic {
    void run(Steps ok) throws Exception;
  }

  interface Steps {
    /** Ends the topic if the step does not hold, because later steps depend on it. */
    void step(String name, boolean holds, Object found) throws Broken;
  }

  static final class Broken extends Exception {
    private static final long serialVersionUID = 1;
  }

  void topic(String topic, Topic body) {
    Steps steps = (name, holds, found) -> {
      line(holds, topic + ": " + name, found);
      if (!holds) throw new Broken();
    };
    try {
      body.run(steps);
    } catch (Broken ended) {
      // The step has been printed.
    } catch (Exception error) {
      line(false, topic, error);
    }
  }

  private void line(boolean holds, String name, Object found) {
    count++;
    if (holds) {
      System.out.printf("ok %d - %s%n", count, name);
      return;
    }
    failed++;
    System.out.printf("not ok %d - %s%n  # %s%n", count, name, String.valueOf(found).replaceAll("\\s+", " "));
  }

  /** Prints the plan and returns the exit status. */
  int end() {
    System.out.printf("1..%d%n", count);
    return Math.min(failed, 1);
  }
}
