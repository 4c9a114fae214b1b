package interop;

/** Prints TAP version 14 (testanything.org). */
final class Tap {
  /** Characters of a found value that are printed. */
  private static final int LONGEST = 2000;

  private int count;
  private int failed;

  /** A condition that must hold. If it does not, the remaining steps of its topic, which depend on it, are skipped. */
  interface Step {
    void ok(String name, boolean holds, Object found);

    default void ok(String name, boolean holds) {
      ok(name, holds, "");
    }
  }

  interface Topic {
    void check(Step step) throws Exception;
  }

  private static final class Broken extends RuntimeException {}

  void topic(String topic, Topic body) {
    try {
      body.check((name, holds, found) -> {
        print(holds, topic + ": " + name, found);
        if (!holds) throw new Broken();
      });
    } catch (Broken skipped) {
      // The failure is printed.
    } catch (Exception | Error error) {
      print(false, topic, error);
    }
  }

  private void print(boolean holds, String name, Object found) {
    count++;
    System.out.println((holds ? "ok " : "not ok ") + count + " - " + name);
    if (holds) return;
    failed++;
    var text = String.valueOf(found).replaceAll("\\s+", " ");
    System.out.println("  # " + text.substring(0, Math.min(text.length(), LONGEST)));
  }

  /** Prints the plan and returns the exit status. */
  int end() {
    System.out.println("1.." + count);
    return Math.min(failed, 1);
  }
}
