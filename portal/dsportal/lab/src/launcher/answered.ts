// Asking until there is an answer.

/** Ask again as long as there is none, after longer and longer pauses (in milliseconds). */
export async function answered(
  ask: () => Promise<boolean>,
  pause: number,
  longest: number
): Promise<void> {
  while (!(await ask())) {
    await new Promise(resolve => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, longest);
  }
}
