/* Feeds files to a fuzz target, where libFuzzer is not at hand. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1024 * 1024)

static int replay(const char *path, uint8_t *data) {
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	size_t size = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	return 0;
}

int main(int argc, char **argv) {
	uint8_t *data = malloc(INPUT_MAX);
	int failed = !data;
	for (int i = 1; i < argc && !failed; i++)
		failed = replay(argv[i], data);
	free(data);
	return failed;
}
