/**
 * Lists of commands for `fc.modelRun` and `fc.asyncModelRun`. Unlike those of `fc.commands`, which shrink by what ran before, they
 * shrink by their content alone: the seed and the path of a failure are enough to replay it.
 */
import fc from 'fast-check'

export const commandList = <Command>(
  commands: readonly fc.Arbitrary<Command>[],
  maxLength: number,
): fc.Arbitrary<Command[]> => fc.array(fc.oneof(...commands), { maxLength, size: 'max' })
